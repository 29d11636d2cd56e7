#include "server/rpc/call.h"

namespace colcast::rpc {

using scheduling::Clock;

Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline) {
  using std::chrono::system_clock;
  if (deadline == system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - system_clock::now());
}

Status DropStatus(scheduling::DropReason reason) {
  switch (reason) {
    case scheduling::DropReason::kQueueFull:
      return ResourceExhausted(
          "the server's queue is full (--max_queued_requests); try again or elsewhere");
    case scheduling::DropReason::kDeadlineExceeded:
      return DeadlineExceeded("the deadline passed while the request waited");
    case scheduling::DropReason::kCancelled:
      return Error(StatusCode::kCancelled, "the client hung up");
    case scheduling::DropReason::kShutdown:
      return Unavailable("the server is shutting down");
  }
  return Internal("unknown reason to drop a request");
}

}  // namespace colcast::rpc
