// Counts the memory of request bodies and of data parsed from them, with one limit for all
// requests.
#ifndef COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
#define COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

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
                         std::shared_ptr<net::Budget::Account> host = nullptr)
      : limit_(limit),
        host_(host != nullptr ? std::move(host) : std::make_shared<net::Budget::Account>()),
        held_(limit, host_.get()) {}

  // Counts `bytes`. If there is no room for them, throws OverMemoryLimit and counts nothing.
  void Take(size_t bytes) {
    if (held_.Take(bytes)) return;
    refused_ = held_.bytes() + bytes;
    throw OverMemoryLimit();
  }
  void Return(size_t bytes) { held_.Return(bytes); }

  // The reason why Take() threw. Sets *final if the request alone exceeds the limit, so that
  // retrying is useless.
  Status Refusal(bool* final) const;

 private:
  net::MemoryLimit* const limit_;
  const std::shared_ptr<net::Budget::Account> host_;
  net::Holding held_;
  size_t refused_ = 0;  // the bytes that would have been held when Take() threw
};

// Bytes in one block that grows as they are appended. Beyond kMapped the block is mapped and grows
// by moving its pages, which needs neither a copy nor memory for bytes not yet written.
class CountedBytes {
 public:
  // `memory` counts the block; it may be null, and must live until the block is cleared. If there
  // is no memory left, appending throws OverMemoryLimit or std::bad_alloc, changing nothing.
  explicit CountedBytes(RequestMemory* memory = nullptr) : memory_(memory) {}
  ~CountedBytes() { Clear(); }
  CountedBytes(CountedBytes&& other) noexcept { *this = std::move(other); }
  CountedBytes& operator=(CountedBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  void Append(const void* data, size_t size) {
    if (size == 0) return;
    std::memcpy(Room(size), data, size);
    size_ += size;
  }
  void Append(std::string_view bytes) { Append(bytes.data(), bytes.size()); }
  template <typename T>
  void AppendValue(T value) {
    std::memcpy(Room(sizeof(value)), &value, sizeof(value));
    size_ += sizeof(value);
  }

  // Makes room for `size` more bytes and returns it; Extend() adds the bytes written there.
  uint8_t* Room(size_t size) {
    if (capacity_ - size_ < size) Grow(size);
    return data_ + size_;
  }
  void Extend(size_t size) { size_ += size; }

  size_t size() const { return size_; }
  // Valid until the next append, even if this object is moved.
  const uint8_t* data() const { return data_; }
  Bytes bytes() const { return {data_, size_}; }
  // The bytes, with a NUL after them.
  std::string_view Text() {
    *Room(1) = 0;
    return {reinterpret_cast<const char*>(data_), size_};
  }

  void Clear();

 private:
  static constexpr size_t kLeast = 64;
  static constexpr size_t kMapped = 1 << 20;

  void Grow(size_t more);

  RequestMemory* memory_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
