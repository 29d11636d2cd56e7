// gRPC's headers and messages: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#ifndef COLCAST_SERVER_HTTP2_GRPC_H_
#define COLCAST_SERVER_HTTP2_GRPC_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"

namespace colcast::http2 {

// Parses a grpc-timeout: at most eight digits and a unit, such as "100m" for 100 ms. Returns
// nullopt for any other text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

// Whether a content-type is gRPC's: "application/grpc", perhaps with "+proto" or ";...", but not
// "application/grpc-web".
bool IsGrpc(std::string_view content_type);

// Encodes a grpc-message: replaces '%' and bytes other than printable ASCII by escapes like "%E2".
std::string PercentEncode(std::string_view text);

// A compression flag and four bytes with the message's length precede each message.
inline constexpr size_t kMessagePrefixBytes = 5;
using MessagePrefix = std::array<uint8_t, kMessagePrefixBytes>;

inline MessagePrefix PrefixOf(size_t message_bytes, bool is_compressed) {
  const auto size = static_cast<uint32_t>(message_bytes);
  return {static_cast<uint8_t>(is_compressed), static_cast<uint8_t>(size >> 24),
          static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 8),
          static_cast<uint8_t>(size)};
}

enum class Compression { kNone, kGzip, kDeflate };

// A message, possibly compressed. Holds views of its bytes where they were received or written, and
// the owners of that memory. Copies share the bytes.
class Message {
 public:
  using Owner = std::shared_ptr<const void>;  // keeps the bytes of a slice alive

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Valid until the message changes.
  Bytes bytes() const { return Bytes(slices_.data(), slices_.size()); }
  const std::vector<Slice>& slices() const { return slices_; }
  const std::vector<Owner>& owners() const { return owners_; }  // one per slice

  void Append(Owner owner, const uint8_t* data, size_t size) {
    owners_.push_back(std::move(owner));
    slices_.push_back({data, size});
    size_ += size;
  }
  // Extends the last slice by the bytes that follow it in its owner's memory.
  void Extend(size_t size) {
    slices_.back().size += size;
    size_ += size;
  }
  void Clear() { *this = Message(); }

  Compression compression() const { return compression_; }
  void set_compression(Compression compression) { compression_ = compression; }

 private:
  std::vector<Owner> owners_;
  std::vector<Slice> slices_;
  size_t size_ = 0;
  Compression compression_ = Compression::kNone;
};

class MessageReader {
 public:
  explicit MessageReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The encoding of messages whose compression flag is set: the stream's grpc-encoding.
  void set_encoding(std::string encoding) { encoding_ = std::move(encoding); }

  // Reads `size` bytes from `data`, which `owner` keeps alive. Shares long runs, copies short ones.
  // Stops at the end of a message and sets *size to the number of bytes read. Returns
  // RESOURCE_EXHAUSTED for a message longer than `max_bytes`, before any of it is stored.
  Status Read(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t* size);

  // Whether the message is complete. Take() then returns it, once.
  bool has_message() const { return prefix_bytes_ == kMessagePrefixBytes && left_ == 0; }
  Message Take();

 private:
  Status BeginMessage();
  void Keep(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t size);
  void Copy(const uint8_t* data, size_t size);

  const size_t max_bytes_;
  std::string encoding_;
  MessagePrefix prefix_{};
  size_t prefix_bytes_ = 0;
  size_t left_ = 0;
  Message message_;
  uint8_t* room_ = nullptr;  // free space after the last slice, in its own block
  size_t room_bytes_ = 0;
};

// Copies a gRPC message, prefix first, into buffers of any size.
class MessageWriter {
 public:
  // Replaces the previous message.
  void Begin(Message message);
  // Copies the next bytes, at most `size`, and returns their number.
  size_t Copy(uint8_t* out, size_t size);

  // Both methods refer to the current message.
  bool has_message() const { return has_message_; }
  bool has_bytes_left() const { return has_message_ && sent_ < message_.size() + prefix_.size(); }
  void End() { has_message_ = false; }

 private:
  Message message_;
  MessagePrefix prefix_{};
  bool has_message_ = false;
  size_t sent_ = 0;   // bytes, prefix included
  size_t slice_ = 0;  // index of the next slice
  size_t of_slice_ = 0;
};

// Allocates a block of memory, or returns an error, which ends the decompression.
using MakeBlock = std::function<Status(size_t bytes, std::shared_ptr<uint8_t[]>* block)>;
Status MakePlainBlock(size_t bytes, std::shared_ptr<uint8_t[]>* block);

// Replaces a compressed message with the decompressed one, in blocks of at most a megabyte; leaves
// other messages unchanged. Returns RESOURCE_EXHAUSTED if the result exceeds `max_bytes` or there
// is no memory; INTERNAL, as in gRPC, for invalid compressed bytes; or the error of `make_block`.
// On an error the message is unchanged.
Status Inflate(size_t max_bytes, Message* message, const MakeBlock& make_block = MakePlainBlock);

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_GRPC_H_
