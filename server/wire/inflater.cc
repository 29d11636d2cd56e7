#include "server/wire/inflater.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>

namespace colcast {
namespace {

constexpr size_t kMinBlockBytes = 4 << 10;
constexpr size_t kMaxBlockBytes = 1 << 20;
constexpr int kGzipOrZlib = 32;  // added to the window bits

}  // namespace

Status Inflate(Span<Slice> compressed, size_t max_bytes, const MakeRoom& make_room,
               const std::function<void(size_t size)>& added) {
  z_stream stream = {};
  if (inflateInit2(&stream, MAX_WBITS + kGzipOrZlib) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  const size_t sent = Bytes(compressed.data(), compressed.size()).size();
  const auto damaged = [sent](const char* why) {
    return InvalidArgument("the compressed ", sent, " bytes are not valid gzip or zlib: ", why);
  };
  const Slice* slice = compressed.begin();
  const auto has_input = [&] {
    for (; stream.avail_in == 0 && slice != compressed.end(); ++slice) {
      stream.next_in = const_cast<Bytef*>(slice->data);
      stream.avail_in = static_cast<uInt>(slice->size);
    }
    return stream.avail_in > 0;
  };
  size_t inflated = 0;
  for (bool ended = false; !ended;) {
    // One byte beyond the limit, to detect longer output.
    const size_t room =
        1 + std::min(max_bytes - inflated, std::clamp(inflated, kMinBlockBytes, kMaxBlockBytes));
    if (Status status = make_room(room, &stream.next_out); !status.ok()) return status;
    stream.avail_out = static_cast<uInt>(room);
    while (!ended && stream.avail_out > 0) {
      has_input();
      const int code = inflate(&stream, Z_NO_FLUSH);
      ended = code == Z_STREAM_END;
      if (ended && has_input()) return damaged("bytes follow its end");
      if (!ended && code != Z_OK) {
        return damaged(stream.msg != nullptr ? stream.msg : "it ends too early");
      }
    }
    const size_t size = room - stream.avail_out;
    inflated += size;
    if (inflated > max_bytes) {
      return ResourceExhausted("the compressed ", sent, " bytes inflate to more than ", max_bytes,
                               " (--max_request_bytes)");
    }
    if (size > 0) added(size);
  }
  return OkStatus();
}

}  // namespace colcast
