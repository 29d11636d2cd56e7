// Memory that requests over HTTP take, counted: each one's, and that of all together, for which
// there is a limit.
#ifndef COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
#define COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <new>

#include "server/base/status.h"

namespace colcast::http {

// What all requests may take together. Any thread may use it.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t bytes) : bytes_(bytes) {}

  size_t bytes() const { return bytes_; }
  size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  friend class RequestMemory;

  const size_t bytes_;
  std::atomic<size_t> taken_{0};
};

// Thrown where memory is taken, so that whoever is ready for having none left is ready for it.
class OverMemoryLimit : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "over the limit of all REST requests"; }
};

// What one request has taken. Of one thread at a time.
class RequestMemory {
 public:
  // Without a limit nothing is counted. `limit` outlives the request.
  explicit RequestMemory(MemoryLimit* limit = nullptr) : limit_(limit) {}
  ~RequestMemory() { Return(taken_); }
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // Throws OverMemoryLimit, and takes nothing, if there is no room.
  void Take(size_t bytes);
  void Return(size_t bytes);

  // Why Take threw. *final: the request alone is over the limit, so that trying again is in vain.
  Status Refusal(bool* final) const;

 private:
  MemoryLimit* const limit_;
  size_t taken_ = 0;
  size_t refused_ = 0;  // what it would have taken
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
