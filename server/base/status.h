// The only error type of the native server, on both sides of the engine interface: a code with
// gRPC's canonical numbers, and a message for the person who sent the request.
#ifndef COLCAST_SERVER_BASE_STATUS_H_
#define COLCAST_SERVER_BASE_STATUS_H_

#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace colcast {

// The values equal those of grpc::StatusCode.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};
inline constexpr int kNumStatusCodes = 17;

// "INVALID_ARGUMENT" for kInvalidArgument, as gRPC and TensorFlow Serving print it.
std::string_view StatusName(StatusCode code);

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::kOk;
  std::string message;

  bool ok() const { return code == StatusCode::kOk; }
};

inline Status OkStatus() { return {}; }

// An error whose message concatenates `parts`: Error(code, "input ", name, ": 3 rows").
template <typename... Parts>
Status Error(StatusCode code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  return {code, std::move(message).str()};
}

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Error(StatusCode::kInvalidArgument, parts...);
}

template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return Error(StatusCode::kNotFound, parts...);
}

template <typename... Parts>
Status FailedPrecondition(const Parts&... parts) {
  return Error(StatusCode::kFailedPrecondition, parts...);
}

template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return Error(StatusCode::kResourceExhausted, parts...);
}

template <typename... Parts>
Status DeadlineExceeded(const Parts&... parts) {
  return Error(StatusCode::kDeadlineExceeded, parts...);
}

template <typename... Parts>
Status Unavailable(const Parts&... parts) {
  return Error(StatusCode::kUnavailable, parts...);
}

template <typename... Parts>
Status Internal(const Parts&... parts) {
  return Error(StatusCode::kInternal, parts...);
}

// Returns the result of `work`. If it throws std::bad_alloc, returns RESOURCE_EXHAUSTED, the code
// that TensorFlow uses if memory for tensors runs out.
template <typename Work>
Status WithinMemory(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the server has no memory left for the request");
  }
}

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_STATUS_H_
