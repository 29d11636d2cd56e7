// Converts TensorFlow's status to the server's.
#ifndef COLCAST_SERVER_ENGINE_STATUS_H_
#define COLCAST_SERVER_ENGINE_STATUS_H_

#include "absl/status/status.h"
#include "server/base/status.h"
#include "server/wire/data_type.h"

namespace colcast::engine {

// Both types of status have gRPC's canonical codes. Messages are shortened, because ops may quote
// their input in full, and clients drop a response whose headers are too long.
inline Status FromAbsl(const absl::Status& status) {
  return {static_cast<StatusCode>(status.code()), Readable(status.message())};
}

inline absl::Status ToAbsl(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code), status.message);
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_STATUS_H_
