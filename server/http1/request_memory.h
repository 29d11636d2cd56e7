// Counts the memory of request bodies and of data parsed from them, with one limit for all
// requests.
#ifndef COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
#define COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/net/hosts.h"
#include "server/wire/bytes.h"

namespace colcast::http {

// Derives from std::bad_alloc, so that code that handles failed allocations catches it too.
class OverMemoryLimit : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "over the limit for all REST requests"; }
};

// The memory of one request. Used by one thread at a time.
class RequestMemory {
 public:
  // Without a limit nothing is counted. `limit` must outlive the request. `host` is the client's
  // account; null for a separate account.
  explicit RequestMemory(net::MemoryLimit* limit = nullptr,
                         std::shared_ptr<net::Budget::Account> host = nullptr);
  ~RequestMemory() { Return(taken_); }
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // Counts `bytes`. If there is no room for them, throws OverMemoryLimit and counts nothing.
  void Take(size_t bytes);
  void Return(size_t bytes);

  // The reason why Take() threw. Sets *final if the request alone exceeds the limit, so that
  // retrying is useless.
  Status Refusal(bool* final) const;

 private:
  net::MemoryLimit* const limit_;
  const std::shared_ptr<net::Budget::Account> host_;
  size_t taken_ = 0;
  size_t refused_ = 0;  // taken_ plus the bytes refused when Take() threw
};

// Collects bytes as they arrive, in slices like gRPC's: growing copies nothing, and at most half of
// a small buffer is unused.
class SliceBuffer {
 public:
  // `memory` counts the slices; it may be null and must outlive the buffer. If there is no memory
  // left, appending throws OverMemoryLimit or std::bad_alloc, and the buffer may contain some of
  // the new bytes.
  explicit SliceBuffer(RequestMemory* memory = nullptr) : memory_(memory) {}
  ~SliceBuffer() { Clear(); }
  SliceBuffer(SliceBuffer&& other) noexcept { *this = std::move(other); }
  SliceBuffer& operator=(SliceBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(slices_, other.slices_);
    std::swap(size_, other.size_);
    std::swap(free_, other.free_);
    std::swap(counted_, other.counted_);
    return *this;
  }

  void Append(const void* data, size_t size) {
    const auto* from = static_cast<const uint8_t*>(data);
    while (size > 0) {
      if (free_ == 0) AddSlice(size);
      const size_t part = std::min(size, free_);
      std::memcpy(Tail(part), from, part);
      from += part;
      size -= part;
    }
  }
  void Append(std::string_view bytes) { Append(bytes.data(), bytes.size()); }

  template <typename T>
  void AppendValue(T value) {
    if (free_ >= sizeof(value)) {
      std::memcpy(Tail(sizeof(value)), &value, sizeof(value));
    } else {
      Append(&value, sizeof(value));
    }
  }

  size_t size() const { return size_; }
  // Valid until the next append, even if the buffer is moved.
  Span<Slice> slices() const { return slices_; }
  Bytes bytes() const { return {slices_.data(), slices_.size()}; }

  void Clear() {
    for (const Slice& slice : slices_) delete[] slice.data;
    slices_.clear();
    size_ = free_ = 0;
    if (counted_ > 0) memory_->Return(counted_);
    counted_ = 0;
  }

 private:
  // Multiples of eight, so that no number spans two slices.
  static constexpr size_t kLeast = 64;
  static constexpr size_t kMost = 1 << 20;

  uint8_t* Tail(size_t size) {
    Slice& last = slices_.back();
    auto* const tail = const_cast<uint8_t*>(last.data) + last.size;
    last.size += size;
    size_ += size;
    free_ -= size;
    return tail;
  }

  void AddSlice(size_t wanted) {
    const size_t most = std::min(kMost, std::max({kLeast, size_, wanted}));
    const size_t capacity = (most + 7) / 8 * 8;
    if (memory_ != nullptr) {
      memory_->Take(capacity);
      counted_ += capacity;
    }
    std::unique_ptr<uint8_t[]> block(new uint8_t[capacity]);
    slices_.push_back({block.get(), 0});
    block.release();
    free_ = capacity;
  }

  RequestMemory* memory_ = nullptr;
  std::vector<Slice> slices_;  // owns the bytes of each slice
  size_t size_ = 0;
  size_t free_ = 0;
  size_t counted_ = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
