// Decompresses bodies over HTTP and messages over gRPC.
#ifndef COLCAST_SERVER_WIRE_INFLATER_H_
#define COLCAST_SERVER_WIRE_INFLATER_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast {

enum class CompressedFormat {
  kGzip,      // one gzip member, as gRPC sends
  kZlib,      // one zlib stream, which gRPC calls deflate
  kGzipBody,  // gzip members or zlib streams, one after the other, as HTTP allows
};

// Makes room for the next `size` bytes, or returns the error with which decompression ends.
using MakeRoom = std::function<Status(size_t size, uint8_t** room)>;

// Decompresses the slices into blocks of growing size, at most a megabyte: calls make_room(), then
// added() with the number of bytes written there, which is not 0. Returns INVALID_ARGUMENT for
// invalid compressed bytes, RESOURCE_EXHAUSTED as soon as there are more than `max_bytes`, or the
// error of make_room(). Throws std::bad_alloc, and what the functions throw.
Status Inflate(Span<Slice> compressed, CompressedFormat format, size_t max_bytes,
               const MakeRoom& make_room, const std::function<void(size_t size)>& added);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFLATER_H_
