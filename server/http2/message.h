// A message's bytes, which stay where they were received or written, and the owners of this memory.
#ifndef COLCAST_SERVER_HTTP2_MESSAGE_H_
#define COLCAST_SERVER_HTTP2_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/wire/bytes.h"

namespace colcast::http2 {

enum class Compression { kNone, kGzip, kDeflate };

// Copies share the bytes.
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
  // Extends the last slice by bytes that follow it in its owner's memory.
  void Extend(size_t size) {
    slices_.back().size += size;
    size_ += size;
  }
  void Clear() { *this = Message(); }

  // How the bytes are compressed.
  Compression compression() const { return compression_; }
  void set_compression(Compression compression) { compression_ = compression; }

 private:
  std::vector<Owner> owners_;
  std::vector<Slice> slices_;
  size_t size_ = 0;
  Compression compression_ = Compression::kNone;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_MESSAGE_H_
