// Jobs, which wait for a worker to run them.
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

// The status for the client of a job that never ran.
Status DropStatus(DropReason reason);

class Job;
class RequestClass;

// Resources that a run needs before it starts.
struct RunNeeds {
  int64_t bytes = 0;         // estimated memory
  Clock::duration worker{};  // estimated time that it occupies a worker, if long
};

// What the queue knows about a job. A job with an empty profile runs alone, in order of arrival.
struct JobProfile {
  // The scheduler clamps a request's rows to this.
  static constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

  RequestClass* request_class = nullptr;  // outlives the job; may be null
  uint64_t group = 0;  // jobs of the same class and non-zero group may run together
  int64_t rows = 0;
  Clock::duration cost{};  // estimated worker time; 0 if unknown
  uint64_t client = 0;     // Job::client()
  RunNeeds needs{};        // resources for which the job waits

  bool MayJoin() const;
};

// A dequeued job, and how long it waited.
struct Taken {
  Job* job = nullptr;
  Clock::duration waited{};
};

// One request, or a slice of one. Either Run or Drop is called exactly once, directly or as a
// companion of another job; after that the job owns itself.
class Job {
 public:
  virtual ~Job() = default;
  // The time at which the client stops waiting; Clock::time_point::max() if it never does.
  virtual Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;

  // The client to which the job belongs: all jobs of a caller, or of a connection, return the same
  // number. 0 means that the client has only this job.
  virtual uint64_t client() const { return 0; }

  // Fills in the profile as far as that is cheap. Called on the submitting thread before the job is
  // queued.
  virtual void Describe(JobProfile* /*profile*/) {}

  // Runs the job and its companions, which are of the same class; a job without a class has none.
  // The job may change the vector.
  virtual void Run(Clock::duration waited, std::vector<Taken>* companions) = 0;
  virtual void Drop(DropReason reason) = 0;

  // Called before Drop(). Returns false for a slice of a request that was already counted.
  virtual bool CountsAsDropped() { return true; }
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_JOB_H_
