#include "server/scheduling/drop_status.h"

namespace colcast::scheduling {

Status DropStatus(DropReason reason) {
  switch (reason) {
    case DropReason::kQueueFull:
      return ResourceExhausted(
          "the server's queue is full (--max_queued_requests); try again or elsewhere");
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
