// A message's bytes as gRPC delivers them, possibly in several slices, read without copying.
#ifndef COLCAST_SERVER_WIRE_BYTES_H_
#define COLCAST_SERVER_WIRE_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace colcast {

// A view of contiguous elements owned elsewhere (std::span comes with C++20).
template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(const T* data, size_t size) : data_(data), size_(size) {}
  // NOLINTNEXTLINE(google-explicit-constructor): functions that take a Span accept vectors, too.
  Span(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](size_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

struct Slice {
  const uint8_t* data;
  size_t size;
};

// A view of bytes, which must outlive it. If it spans several slices, the array of slices must
// outlive it, too. Cheap to copy.
class Bytes {
 public:
  Bytes() = default;

  Bytes(const void* data, size_t size)
      : head_(static_cast<const uint8_t*>(data)), head_size_(size), size_(size) {}

  // NOLINTNEXTLINE(google-explicit-constructor): literal bytes in tests.
  Bytes(std::string_view text) : Bytes(text.data(), text.size()) {}

  // All bytes of `slices` in order; empty slices are allowed.
  Bytes(const Slice* slices, size_t slice_count);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool contiguous() const { return head_size_ == size_; }

  // Requires contiguous().
  const uint8_t* data() const { return head_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(head_), size_}; }

  // The bytes [offset, offset + size). Requires offset + size <= size().
  Bytes Sub(size_t offset, size_t size) const {
    if (offset + size > head_size_) return SubAcross(offset, size);
    return Bytes(head_ + offset, size);
  }

  void CopyTo(void* out) const {
    if (head_size_ > 0) std::memcpy(out, head_, head_size_);
    if (!contiguous()) CopyRest(static_cast<uint8_t*>(out) + head_size_);
  }

  std::string ToString() const {
    std::string text(size_, '\0');
    CopyTo(text.data());
    return text;
  }

  // Calls visit(const uint8_t* data, size_t size) for each contiguous, non-empty run of bytes, in
  // order.
  template <typename Visit>
  void ForEachPiece(Visit&& visit) const {
    if (head_size_ > 0) visit(head_, head_size_);
    size_t left = size_ - head_size_;
    for (const Slice* slice = rest_; left > 0; ++slice) {
      const size_t piece = std::min(left, slice->size);
      if (piece > 0) visit(slice->data, piece);
      left -= piece;
    }
  }

 private:
  friend class Reader;

  Bytes(const uint8_t* head, size_t head_size, size_t size, const Slice* rest)
      : head_(head), head_size_(head_size), size_(size), rest_(rest) {}

  Bytes SubAcross(size_t offset, size_t size) const;
  void CopyRest(uint8_t* out) const;

  const uint8_t* head_ = nullptr;  // the first head_size_ of size_ bytes
  size_t head_size_ = 0;
  size_t size_ = 0;
  const Slice* rest_ = nullptr;  // the slice in which the other bytes begin
};

// Like IsValidUtf8() for contiguous text (server/base/text.h).
bool IsValidUtf8(const Bytes& text);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_BYTES_H_
