// Decompresses bytes slice by slice: bodies over HTTP and messages over gRPC.
#ifndef COLCAST_SERVER_WIRE_INFLATER_H_
#define COLCAST_SERVER_WIRE_INFLATER_H_

#include <zlib.h>

#include <cstddef>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast {

class Inflater {
 public:
  enum class Format {
    kGzip,      // one gzip member, as gRPC sends
    kZlib,      // one zlib stream, which gRPC calls deflate
    kGzipBody,  // gzip members or zlib streams, one after the other, as HTTP allows
  };

  // `compressed` must outlive this object. Throws std::bad_alloc.
  Inflater(Span<Slice> compressed, Format format, size_t max_bytes);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Writes the next bytes to `out`, at most *size, and sets *size, which is 0 at the end. Returns
  // INVALID_ARGUMENT for invalid compressed bytes, RESOURCE_EXHAUSTED as soon as the output exceeds
  // `max_bytes`.
  Status Read(void* out, size_t* size);

 private:
  void FeedNextSlice();
  Status EndOfStream();
  Status Damaged(const char* why) const;
  size_t CompressedBytes() const { return Bytes(compressed_.data(), compressed_.size()).size(); }

  const Span<Slice> compressed_;
  const Format format_;
  const size_t max_bytes_;
  size_t next_slice_ = 0;
  size_t inflated_ = 0;
  bool ended_ = false;
  z_stream stream_ = {};
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFLATER_H_
