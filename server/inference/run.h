// Runs Predict requests alone, together or in slices, from when a worker dequeues them until they
// are answered. Independent of the protocol.
#ifndef COLCAST_SERVER_INFERENCE_RUN_H_
#define COLCAST_SERVER_INFERENCE_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/base/machine.h"
#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/worker_pool.h"
#include "server/wire/predict_request.h"

namespace colcast::inference {

// A request's plan. Made after columns from item tables have been added.
struct PlannedPredict {
  std::optional<Status> status;  // not set until the request has been planned
  engine::PlanPtr plan;          // null if the status is an error
};

// One request in a run.
class PredictMember {
 public:
  virtual ~PredictMember() = default;

  virtual scheduling::Job* job() = 0;

  // The call's record, to which the run adds its figures.
  virtual metrics::CallRecord* record() = 0;

  // Observes the stages of the run; may be null.
  virtual engine::RunObserver* observer() const { return nullptr; }

  // Reads the request and finds its servable, unless that has been done. Called once, on a worker.
  virtual Status Read() = 0;

  // Valid after Read(), until Finish().
  virtual DecodedRequest& request() = 0;
  virtual const Servable& servable() const = 0;
  virtual const Signature* signature() const = 0;  // null if the servable has no such signature

  // Answers with the outputs or, if they are null, with the error. Destroys the member.
  virtual void Finish(const Status& status, const engine::Outputs* outputs) = 0;

  // Set when the queue or a worker first needs the plan. Reset it whenever request() changes.
  PlannedPredict planned;
};

// Fills in the profile of a request whose request() and servable() exist. Leaves the profile empty
// if the request is invalid; the worker that takes the request will report the error.
void DescribePredict(PredictMember* member, scheduling::JobProfile* profile);

// Answers `first`, which has waited for `waited`, and its companions, whose jobs are also
// PredictMembers. A short request without companions dequeues companions that arrived while it was
// read. A large request is split into slices for `workers`; the worker that runs the last slice
// answers it. An error in one request does not affect the others.
void RunPredict(PredictMember* first, scheduling::Clock::duration waited,
                std::vector<scheduling::Taken> companions, scheduling::WorkerPool* workers);

// Implementation details, shared with example_run.h, follow.

// A request that a worker has read, with its plan and estimated cost.
struct AdmittedRequest {
  PredictMember* member = nullptr;
  scheduling::RequestClass* request_class = nullptr;
  scheduling::Clock::duration cost{};  // estimated; zero if unknown
  bool whole = false;                  // must run whole, because running it in slices failed

  const engine::PlannedRequest& plan() const { return *member->planned.plan; }
  const engine::RequestProfile& profile() const { return plan().profile; }
};

// Reads and plans the request. On failure, finishes it with the error and returns false.
bool Admit(PredictMember* member, scheduling::Clock::duration waited, AdmittedRequest* admitted);

// Runs the request, in slices if that pays, or queues it again until it may run.
void RunAlone(AdmittedRequest admitted, scheduling::WorkerPool* workers);

// Splits the request and submits its slices to the workers; the worker that runs the last slice
// answers it. If a slice fails for a reason other than memory, the request runs whole. Returns
// false and changes nothing if the request should not be split. REQUIRES a profile that can be
// split.
bool RunBySlices(AdmittedRequest* admitted, scheduling::WorkerPool* workers);

// Returns what a run of the whole request needs.
scheduling::RunNeeds NeedsOf(const AdmittedRequest& admitted);

// Returns the error for a request that can never get the memory it needs.
Status Refusal(const AdmittedRequest& admitted, const scheduling::WorkerPool& workers);

// Describes the request for the queue.
scheduling::JobProfile JobProfileOf(const AdmittedRequest& admitted);

// Reports the stages of a run to the traced requests in it. While an instance exists, it observes
// runs on the calling thread.
class ObservedRun final : engine::RunObserver {
 public:
  explicit ObservedRun(const engine::Model& model) : model_(model) {}
  ~ObservedRun() override {
    if (!observers_.empty()) model_.ObserveRuns(nullptr);
  }

  // Adds a request's observer, which is null if the request is not traced.
  void Add(engine::RunObserver* observer) {
    if (observer == nullptr) return;
    if (observers_.empty()) model_.ObserveRuns(this);
    observers_.push_back(observer);
  }

 private:
  void OnStage(const engine::StageRun& run) override {
    for (engine::RunObserver* const observer : observers_) observer->OnStage(run);
  }

  const engine::Model& model_;
  std::vector<engine::RunObserver*> observers_;
};

// The time for which a run keeps its thread busy. On a low-priority thread, this is CPU time,
// because wall time would include preemption.
class BusyTime {
 public:
  scheduling::Clock::duration Elapsed() const { return Now() - start_; }

 private:
  static scheduling::Clock::duration Now();

  const scheduling::Clock::duration start_ = Now();
};

// Measures a run and, unless it is cold, records the results in the request class `of`, if any.
class MeasuredRun {
 public:
  explicit MeasuredRun(scheduling::RequestClass* of)
      : of_(of), counts_(of != nullptr && of->warm()) {}

  // Call after a successful run.
  void Learn(int64_t size, int64_t input_bytes) {
    if (counts_) of_->cost().Observe(size, busy_.Elapsed());
    LearnMemory(input_bytes);
  }
  void LearnMemory(int64_t input_bytes) {
    if (counts_) of_->memory().Observe(input_bytes, allocated_.bytes());
    if (of_ != nullptr) of_->NoteRun();
  }
  bool counts() const { return counts_; }

 private:
  scheduling::RequestClass* const of_;
  const bool counts_;
  const BusyTime busy_;
  const AllocationPeak allocated_;
};

// What a run needs if it is not split. `cost` is the estimate; zero if unknown.
scheduling::RunNeeds NeedsOfRun(scheduling::RequestClass& of, scheduling::Clock::duration cost,
                                int64_t input_bytes);

// Returns RESOURCE_EXHAUSTED: a run is estimated to take `bytes` of memory, but at most `max_bytes`
// are allowed.
Status TooMuchMemory(int64_t rows, int64_t input_bytes, int64_t bytes, int64_t max_bytes);

// One of several requests that run together.
struct RequestOfRows {
  const DecodedRequest* request;
  int64_t rows;
};

// Returns how many bytes of padding the inputs contain if these requests to one signature run
// together, which pads lists to the longest one. Trusts the sizes that the requests declare.
int64_t PaddingBytes(const std::vector<RequestOfRows>& requests);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_RUN_H_
