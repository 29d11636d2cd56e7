// Decompresses messages, up to a limit. Messages stay compressed while they wait.
#ifndef COLCAST_SERVER_HTTP2_INFLATE_H_
#define COLCAST_SERVER_HTTP2_INFLATE_H_

#include <cstddef>

#include "server/base/status.h"
#include "server/http2/message.h"

namespace colcast::http2 {

// Replaces a compressed message by the inflated one; leaves others unchanged. RESOURCE_EXHAUSTED if
// that takes more than `max_bytes`, or finds no memory; INTERNAL, as in gRPC, for bytes that do not
// inflate. On an error the message is unchanged.
Status Inflate(size_t max_bytes, Message* message);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_INFLATE_H_
