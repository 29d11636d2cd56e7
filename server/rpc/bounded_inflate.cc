#include "server/rpc/bounded_inflate.h"

#include <grpc/compression.h>
#include <grpc/slice.h>
#include <grpc/slice_buffer.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <limits>

namespace colcast::rpc {
namespace {

constexpr size_t kMinBlockBytes = 4 << 10;
constexpr size_t kMaxBlockBytes = 1 << 20;
constexpr int kMaxWindowBits = 15;
constexpr int kGzipHeader = 16;

std::atomic<size_t> max_inflated_bytes{std::numeric_limits<size_t>::max() - 1};

// One message: blocks of output that grow with what has been written already.
class Inflater {
 public:
  Inflater(bool gzip, grpc_slice_buffer* output) : output_(output) {
    initialized_ = inflateInit2(&stream_, kMaxWindowBits + (gzip ? kGzipHeader : 0)) == Z_OK;
  }
  ~Inflater() {
    if (initialized_) inflateEnd(&stream_);
  }

  // False if `input` is no compressed message.
  bool Inflate(const grpc_slice_buffer& input) {
    if (!initialized_) return false;
    int result = Z_OK;
    for (size_t i = 0; i < input.count && result == Z_OK && left_ > 0; ++i) {
      stream_.next_in = const_cast<Bytef*>(GRPC_SLICE_START_PTR(input.slices[i]));
      stream_.avail_in = static_cast<uInt>(GRPC_SLICE_LENGTH(input.slices[i]));
      result = InflateSlice();
    }
    return result == Z_STREAM_END || left_ == 0;
  }

 private:
  int InflateSlice() {
    int result = Z_OK;
    bool block_filled = true;
    while (result == Z_OK && left_ > 0 && (stream_.avail_in > 0 || block_filled)) {
      const size_t written = output_->length;
      const size_t room = std::min(left_, std::clamp(written, kMinBlockBytes, kMaxBlockBytes));
      grpc_slice block = grpc_slice_malloc(room);
      stream_.next_out = GRPC_SLICE_START_PTR(block);
      stream_.avail_out = static_cast<uInt>(room);
      result = inflate(&stream_, Z_NO_FLUSH);
      block_filled = stream_.avail_out == 0;
      Append(block, room - stream_.avail_out);
    }
    return result == Z_BUF_ERROR ? Z_OK : result;  // it wants the next slice
  }

  void Append(grpc_slice block, size_t size) {
    if (size == 0) return grpc_slice_unref(block);
    left_ -= size;
    grpc_slice_buffer_add(output_, grpc_slice_sub_no_ref(block, 0, size));
  }

  z_stream stream_{};
  bool initialized_;
  grpc_slice_buffer* const output_;
  size_t left_ = max_inflated_bytes + 1;
};

}  // namespace

void SetMaxInflatedBytes(size_t max_bytes) { max_inflated_bytes = max_bytes; }

}  // namespace colcast::rpc

// The names that --wrap gives to gRPC's
//   int grpc_msg_decompress(grpc_compression_algorithm, grpc_slice_buffer*, grpc_slice_buffer*)
// and to what takes its place: both append to `output` and return 0 if `input` does not inflate.
extern "C" {

int __real__Z19grpc_msg_decompress26grpc_compression_algorithmP17grpc_slice_bufferS1_(
    grpc_compression_algorithm algorithm, grpc_slice_buffer* input, grpc_slice_buffer* output);

int __wrap__Z19grpc_msg_decompress26grpc_compression_algorithmP17grpc_slice_bufferS1_(
    grpc_compression_algorithm algorithm, grpc_slice_buffer* input, grpc_slice_buffer* output) {
  if (algorithm != GRPC_COMPRESS_GZIP && algorithm != GRPC_COMPRESS_DEFLATE) {
    return __real__Z19grpc_msg_decompress26grpc_compression_algorithmP17grpc_slice_bufferS1_(
        algorithm, input, output);
  }
  return colcast::rpc::Inflater(algorithm == GRPC_COMPRESS_GZIP, output).Inflate(*input) ? 1 : 0;
}

}  // extern "C"
