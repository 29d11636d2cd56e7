// What waits for a worker and is run by one.
#ifndef COLCAST_SERVER_SCHEDULING_JOB_H_
#define COLCAST_SERVER_SCHEDULING_JOB_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "server/base/status.h"

namespace colcast::scheduling {

using Clock = std::chrono::steady_clock;

enum class DropReason { kQueueFull, kBatchQueueFull, kDeadlineExceeded, kCancelled, kShutdown };
inline constexpr int kNumDropReasons = 5;

// "queue_full" for kQueueFull.
const char* DropReasonName(DropReason reason);

// What the client of a job that never ran is told.
Status DropStatus(DropReason reason);

class Job;
class RequestClass;

// What a run has to find free before it begins.
struct RunNeeds {
  int64_t bytes = 0;         // of memory, as estimated
  Clock::duration worker{};  // how long it holds one, as estimated, if that is long
};

// What the queue knows of a job. Of an empty one it knows nothing: it runs alone, in the order of
// arrival.
struct JobProfile {
  // A request may claim more: to the scheduler it has so many.
  static constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

  RequestClass* request_class = nullptr;  // lives at least as long as the job; null: none
  uint64_t group = 0;  // jobs of the same class and group may run together; 0: with none
  int64_t rows = 0;
  Clock::duration cost{};  // the estimated time of a worker; 0: unknown
  uint64_t client = 0;     // Job::client()
  RunNeeds needs{};        // what it waits for

  bool MayJoin() const;
};

// A job and the time it has waited.
struct Taken {
  Job* job = nullptr;
  Clock::duration waited{};
};

// One request, or a slice of one. Exactly one of Run and Drop is called, once, for it or as another
// one's companion; the job owns itself from then on.
class Job {
 public:
  virtual ~Job() = default;
  // When the client stops waiting; Clock::time_point::max() if it never does.
  virtual Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;

  // Whose it is: jobs of one caller, or of one connection, have one number. 0: it is the only one.
  virtual uint64_t client() const { return 0; }

  // Says what it is, as far as that is cheap to find out. Called before the job waits, on the
  // thread that submits it.
  virtual void Describe(JobProfile* /*profile*/) {}

  // Runs the job, and those taken to run with it: jobs of its class, so none if it has none. The
  // vector is the worker's and may be changed.
  virtual void Run(Clock::duration waited, std::vector<Taken>* companions) = 0;
  virtual void Drop(DropReason reason) = 0;

  // Asked before Drop(): false for a slice of a request that has been counted already.
  virtual bool CountsAsDropped() { return true; }
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_JOB_H_
