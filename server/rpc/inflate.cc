#include "server/rpc/inflate.h"

#include <grpc/byte_buffer.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "server/base/out_of_memory.h"

// gRPC's friend, for those who look into a buffer; it leaves the definition to them.
class grpc::internal::GrpcByteBufferPeer {
 public:
  static const grpc_byte_buffer* Get(const grpc::ByteBuffer& buffer) {
    return const_cast<grpc::ByteBuffer&>(buffer).c_buffer();
  }
};

namespace colcast::rpc {
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
  bool Inflate(const std::vector<grpc::Slice>& input) {
    if (!initialized_) return false;
    int result = Z_OK;
    for (size_t i = 0; i < input.size() && result == Z_OK && !is_too_long(); ++i) {
      stream_.next_in = const_cast<Bytef*>(input[i].begin());
      stream_.avail_in = static_cast<uInt>(input[i].size());
      result = InflateSlice();
    }
    EndBlock();
    return result == Z_STREAM_END && !is_too_long();
  }

  bool is_too_long() const { return stream_.total_out > max_bytes_; }
  const std::vector<grpc::Slice>& output() const { return output_; }

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
    void* const memory = operator new(room);  // gRPC ends the process if it finds none
    block_ = grpc::Slice(memory, room, [](void* used) { operator delete(used); });
    stream_.next_out = static_cast<Bytef*>(memory);
    stream_.avail_out = static_cast<uInt>(room);
  }

  void EndBlock() {
    const size_t size = block_.size() - stream_.avail_out;
    if (size > 0) output_.push_back(block_.sub(0, size));
  }

  z_stream stream_{};
  bool initialized_ = false;
  const size_t max_bytes_;
  grpc::Slice block_;  // that is being filled
  std::vector<grpc::Slice> output_;
};

}  // namespace

grpc_compression_algorithm CompressionOf(const grpc::ByteBuffer& message) {
  if (!message.Valid()) return GRPC_COMPRESS_NONE;
  return grpc::internal::GrpcByteBufferPeer::Get(message)->data.raw.compression;
}

Status Inflate(size_t max_bytes, grpc::ByteBuffer* message) {
  const grpc_compression_algorithm algorithm = CompressionOf(*message);
  if (algorithm == GRPC_COMPRESS_NONE) return OkStatus();
  std::vector<grpc::Slice> input;
  if (!message->Dump(&input).ok()) return Internal("a compressed message cannot be read");
  return WithinMemory([&] {
    Inflater inflater(algorithm == GRPC_COMPRESS_GZIP, max_bytes);
    if (inflater.Inflate(input)) {
      *message = grpc::ByteBuffer(inflater.output().data(), inflater.output().size());
      return OkStatus();
    }
    if (inflater.is_too_long()) {
      return ResourceExhausted("a message of ", message->Length(),
                               " compressed bytes inflates to more than ", max_bytes);
    }
    return Internal("a message of ", message->Length(), " compressed bytes does not inflate");
  });
}

}  // namespace colcast::rpc
