// Requests to Predict from when a worker takes them until they are answered: alone, together, or in
// slices, whatever protocol they came by.
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

// What its model makes of a request, with what item tables added.
struct PlannedPredict {
  std::optional<Status> status;  // not yet: it has not been planned
  engine::PlanPtr plan;          // null: the status is an error
};

// One request.
class PredictMember {
 public:
  virtual ~PredictMember() = default;

  virtual scheduling::Job* job() = 0;

  // What happened to it; the run adds to it.
  virtual metrics::CallRecord* record() = 0;

  // Who is told of its stages; null: nobody.
  virtual engine::RunObserver* observer() const { return nullptr; }

  // Reads the request and finds its servable, as far as that has not been done. Once, on a worker.
  virtual Status Read() = 0;

  // Once it has been read, and until it has finished.
  virtual const DecodedRequest& request() const = 0;
  virtual DecodedRequest* mutable_request() = 0;
  virtual const Servable& servable() const = 0;

  // Answers with the outputs, or says why there are none. It is gone afterwards.
  virtual void Finish(const Status& status, const engine::Outputs* outputs) = 0;

  // Set when the queue or a worker first asks; to be reset where request() is.
  PlannedPredict planned;
};

// Tells the queue what a request is, one whose request() and servable() are there. Nothing if
// something is wrong with it: the worker that takes it says what.
void DescribePredict(PredictMember* member, scheduling::JobProfile* profile);

// Answers `first`, which has waited for `waited`, and its companions, whose jobs are
// PredictMembers, too; a short one without companions gets those that have come until it is read. A
// large request runs by slices, which `workers` get, and is answered by whichever ends last.
// Whatever is wrong with one request is its own error only.
void RunPredict(PredictMember* first, scheduling::Clock::duration waited,
                std::vector<scheduling::Taken> companions, scheduling::WorkerPool* workers);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_PREDICT_RUN_H_
