// Compressed messages wait as they came and are inflated by who reads them, up to a limit.
#ifndef COLCAST_SERVER_HTTP2_INFLATE_H_
#define COLCAST_SERVER_HTTP2_INFLATE_H_

#include <cstddef>

#include "server/base/status.h"
#include "server/http2/message.h"

namespace colcast::http2 {

// Puts what a compressed message says in its place; leaves others as they are. RESOURCE_EXHAUSTED
// where that is more than `max_bytes`, or than there is memory; INTERNAL, as gRPC has it, for bytes
// that do not inflate. Then the message stays as it is.
Status Inflate(size_t max_bytes, Message* message);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_INFLATE_H_
