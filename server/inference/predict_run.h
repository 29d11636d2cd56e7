// Runs Predict requests from when a worker dequeues them until they are answered: alone, together
// or in slices, independent of the protocol.
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

// A request's plan, made after item tables added their columns.
struct PlannedPredict {
  std::optional<Status> status;  // not set until the request has been planned
  engine::PlanPtr plan;          // null if the status is an error
};

// One request in a run.
class PredictMember {
 public:
  virtual ~PredictMember() = default;

  virtual scheduling::Job* job() = 0;

  // The call's record, to which the run adds.
  virtual metrics::CallRecord* record() = 0;

  // The observer of the run's stages; null for none.
  virtual engine::RunObserver* observer() const { return nullptr; }

  // Reads the request and finds its servable, unless already done. Called once, on a worker.
  virtual Status Read() = 0;

  // Valid after Read(), until Finish().
  virtual DecodedRequest& request() = 0;
  virtual const Servable& servable() const = 0;

  // Answers with the outputs, or with the error if there are none. Destroys the member.
  virtual void Finish(const Status& status, const engine::Outputs* outputs) = 0;

  // Made when the queue or a worker first needs it. Reset it together with request().
  PlannedPredict planned;
};

// Describes to the queue a request whose request() and servable() exist. Leaves the profile empty
// if the request is invalid: the worker that takes it reports the error.
void DescribePredict(PredictMember* member, scheduling::JobProfile* profile);

// Answers `first`, which has waited for `waited`, and its companions, whose jobs are PredictMembers
// too. A short request without companions takes those that arrived while it was read. A large
// request is split into slices for `workers`, and the worker that runs the last slice answers it.
// An error in one request does not affect the others.
void RunPredict(PredictMember* first, scheduling::Clock::duration waited,
                std::vector<scheduling::Taken> companions, scheduling::WorkerPool* workers);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_PREDICT_RUN_H_
