#include "server/scheduling/job.h"

#include "server/scheduling/request_class.h"

namespace colcast::scheduling {

bool JobProfile::MayJoin() const {
  return group != 0 && request_class != nullptr && request_class->limits().join;
}

const char* DropReasonName(DropReason reason) {
  switch (reason) {
    case DropReason::kQueueFull:
      return "queue_full";
    case DropReason::kBatchQueueFull:
      return "batch_queue_full";
    case DropReason::kDeadlineExceeded:
      return "deadline_exceeded";
    case DropReason::kCancelled:
      return "cancelled";
    case DropReason::kShutdown:
      return "shutdown";
  }
  return "unknown";
}

Status DropStatus(DropReason reason) {
  switch (reason) {
    case DropReason::kQueueFull:
      return ResourceExhausted(
          "the server's queue is full (--max_queued_requests); try again later or on another "
          "server");
    case DropReason::kBatchQueueFull:
      return Unavailable(
          "The batch scheduling queue to which this task was submitted is full "
          "(max_enqueued_batches of --batching_parameters_file)");
    case DropReason::kDeadlineExceeded:
      return DeadlineExceeded("the deadline passed while the request waited");
    case DropReason::kCancelled:
      return Error(StatusCode::kCancelled, "the client hung up");
    case DropReason::kShutdown:
      return Unavailable("the server is shutting down");
  }
  return Internal("unknown reason to drop a request");
}

}  // namespace colcast::scheduling
