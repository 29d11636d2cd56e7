// Runs Predict requests, from the time when a worker dequeues them until they are answered: alone,
// together or in slices. Independent of the protocol.
#ifndef COLCAST_SERVER_INFERENCE_PREDICT_RUN_H_
#define COLCAST_SERVER_INFERENCE_PREDICT_RUN_H_

#include <optional>
#include <vector>

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

  // The run adds to this record of the call.
  virtual metrics::CallRecord* record() = 0;

  // Observes the stages of the run; may be null.
  virtual engine::RunObserver* observer() const { return nullptr; }

  // Reads the request and finds its servable, if that has not been done. Called once, on a worker.
  virtual Status Read() = 0;

  // Valid after Read(), until Finish().
  virtual DecodedRequest& request() = 0;
  virtual const Servable& servable() const = 0;

  // Answers with the outputs or, if they are null, with the error. Destroys the member.
  virtual void Finish(const Status& status, const engine::Outputs* outputs) = 0;

  // Set when the queue or a worker first needs the plan. Reset it whenever request() changes.
  PlannedPredict planned;
};

// Fills in the profile of a request whose request() and servable() exist. Leaves the profile empty
// if the request is invalid; the worker that takes the request will report the error.
void DescribePredict(PredictMember* member, scheduling::JobProfile* profile);

// Answers `first`, which has waited for `waited`, and its companions, whose jobs are also
// PredictMembers. A short request without companions takes those that arrived while it was read. A
// large request is split into slices for `workers`; the worker that runs the last slice answers it.
// An error in one request does not affect the others.
void RunPredict(PredictMember* first, scheduling::Clock::duration waited,
                std::vector<scheduling::Taken> companions, scheduling::WorkerPool* workers);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_PREDICT_RUN_H_
