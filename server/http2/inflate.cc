#include "server/http2/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/out_of_memory.h"

namespace colcast::http2 {
namespace {

constexpr size_t kMinBlockBytes = 4 << 10;
constexpr size_t kMaxBlockBytes = 1 << 20;
constexpr int kMaxWindowBits = 15;
constexpr int kGzipHeader = 16;

// One message: blocks of output that grow with what has been written already, each filled before
// the next one is taken: a message may come in slices of a byte.
class Inflater {
 public:
  Inflater(bool gzip, size_t max_bytes) : max_bytes_(max_bytes) {
    initialized_ = inflateInit2(&stream_, kMaxWindowBits + (gzip ? kGzipHeader : 0)) == Z_OK;
  }
  ~Inflater() {
    if (initialized_) inflateEnd(&stream_);
  }

  // False if `input` is no compressed message, or inflates to more than `max_bytes`: is_too_long().
  bool Inflate(const std::vector<Slice>& input) {
    if (!initialized_) return false;
    int result = Z_OK;
    size_t next = 0;
    while (next < input.size() && result == Z_OK && !is_too_long()) {
      stream_.next_in = const_cast<Bytef*>(input[next].data);
      stream_.avail_in = static_cast<uInt>(input[next].size);
      result = InflateSlice();
      ++next;
    }
    EndBlock();
    const bool is_all = next == input.size() && stream_.avail_in == 0;
    return result == Z_STREAM_END && is_all && !is_too_long();
  }

  bool is_too_long() const { return stream_.total_out > max_bytes_; }
  Message* output() { return &output_; }

 private:
  int InflateSlice() {
    int result = Z_OK;
    do {
      if (stream_.avail_out == 0) BeginBlock();
      result = inflate(&stream_, Z_NO_FLUSH);
    } while (result == Z_OK && !is_too_long() && (stream_.avail_in > 0 || stream_.avail_out == 0));
    return result == Z_BUF_ERROR ? Z_OK : result;  // it wants the next slice
  }

  void BeginBlock() {
    EndBlock();
    const size_t written = stream_.total_out;
    // One byte more than there may be, to see whether there are more.
    const size_t room =
        1 + std::min(max_bytes_ - written, std::clamp(written, kMinBlockBytes, kMaxBlockBytes));
    block_.reset(new uint8_t[room]);
    block_bytes_ = room;
    stream_.next_out = block_.get();
    stream_.avail_out = static_cast<uInt>(room);
  }

  void EndBlock() {
    const size_t size = block_bytes_ - stream_.avail_out;
    if (size > 0) output_.Append(block_, block_.get(), size);
  }

  z_stream stream_{};
  bool initialized_ = false;
  const size_t max_bytes_;
  std::shared_ptr<uint8_t[]> block_;  // that is being filled
  size_t block_bytes_ = 0;
  Message output_;
};

}  // namespace

Status Inflate(size_t max_bytes, Message* message) {
  if (message->compression() == Compression::kNone) return OkStatus();
  return WithinMemory([&] {
    Inflater inflater(message->compression() == Compression::kGzip, max_bytes);
    if (inflater.Inflate(message->slices())) {
      *message = std::move(*inflater.output());
      return OkStatus();
    }
    if (inflater.is_too_long()) {
      return ResourceExhausted("a message of ", message->size(),
                               " compressed bytes inflates to more than ", max_bytes);
    }
    return Internal("a message of ", message->size(), " compressed bytes does not inflate");
  });
}

}  // namespace colcast::http2
