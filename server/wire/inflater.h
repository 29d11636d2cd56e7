// Decompresses bodies over HTTP and messages over gRPC.
#ifndef COLCAST_SERVER_WIRE_INFLATER_H_
#define COLCAST_SERVER_WIRE_INFLATER_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast {

// Makes room for the next `size` bytes, or returns an error, which ends the decompression.
using MakeRoom = std::function<Status(size_t size, uint8_t** room)>;

// Decompresses one gzip member or zlib stream into blocks that grow to at most a megabyte. Calls
// make_room(), then added() with the number of bytes written there, which is not 0. Returns
// INVALID_ARGUMENT for invalid compressed bytes and for bytes after them, RESOURCE_EXHAUSTED as
// soon as there are more than `max_bytes`, or the error of make_room(). Throws std::bad_alloc, and
// whatever the two functions throw.
Status Inflate(Span<Slice> compressed, size_t max_bytes, const MakeRoom& make_room,
               const std::function<void(size_t size)>& added);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFLATER_H_
