#include "server/base/status.h"

#include <cstddef>

namespace colcast {

namespace {

constexpr std::string_view kNames[kNumStatusCodes] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

}  // namespace

std::string_view StatusName(StatusCode code) {
  const auto number = static_cast<size_t>(code);
  return number < kNumStatusCodes ? kNames[number] : "UNKNOWN";
}

}  // namespace colcast
