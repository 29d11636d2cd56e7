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

// The name in metrics, such as "queue_full".
const char* DropReasonName(DropReason reason);

// The status for the client of a job that never ran.
Status DropStatus(DropReason reason);

class Job;
class RequestClass;

// What must be available before a run starts.
struct RunNeeds {
  int64_t bytes = 0;         // estimated memory
  Clock::duration worker{};  // estimated time for which the run occupies a worker, if long
};

// What the queue knows about a job. A job with a default profile runs alone, in order of arrival.
struct JobProfile {
  // Larger numbers of rows count as this many.
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

// One request or slice. Either it is dropped (Drop()) or it runs, by its own Run() or as a
// companion in another job's. From then on it owns itself.
class Job {
 public:
  virtual ~Job() = default;
  // When the client stops waiting; Clock::time_point::max() if never.
  virtual Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;

  // Identifies the client, a caller or a connection: all its jobs return the same number. 0 means
  // that the client has no other jobs.
  virtual uint64_t client() const { return 0; }

  // Fills in the parts of the profile that are cheap to determine. Called by the submitting thread
  // before the job is queued.
  virtual void Describe(JobProfile* /*profile*/) {}

  // Runs the job and its companions, which have the same class (a job without a class has none).
  // May modify the vector.
  virtual void Run(Clock::duration waited, std::vector<Taken>* companions) = 0;
  virtual void Drop(DropReason reason) = 0;

  // Called before Drop(). Returns false for a slice whose request was already counted.
  virtual bool CountsAsDropped() { return true; }
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_JOB_H_
