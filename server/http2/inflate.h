// Decompresses messages, up to a limit. Messages stay compressed while they wait.
#ifndef COLCAST_SERVER_HTTP2_INFLATE_H_
#define COLCAST_SERVER_HTTP2_INFLATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/base/status.h"
#include "server/http2/message_reader.h"

namespace colcast::http2 {

// Allocates a block of memory, or returns the error with which decompression ends.
using MakeBlock = std::function<Status(size_t bytes, std::shared_ptr<uint8_t[]>* block)>;
Status MakePlainBlock(size_t bytes, std::shared_ptr<uint8_t[]>* block);

// Replaces a compressed message with the decompressed one, in blocks of at most a megabyte; leaves
// other messages unchanged. RESOURCE_EXHAUSTED if that takes more than `max_bytes` or there is no
// memory; INTERNAL, as in gRPC, for invalid compressed bytes; or the error of `make_block`. On an
// error the message is unchanged.
Status Inflate(size_t max_bytes, Message* message, const MakeBlock& make_block = MakePlainBlock);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_INFLATE_H_
