// Memory that a request's body, and what it is made into, takes; there is a limit for all of them.
#ifndef COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
#define COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_

#include <cstddef>
#include <memory>
#include <new>

#include "server/base/status.h"
#include "server/net/budget.h"

namespace colcast::http {

// What all requests may take together. One host's leave a quarter of it to others.
class MemoryLimit : public net::Budget {
 public:
  explicit MemoryLimit(size_t bytes) : Budget({bytes, bytes - bytes / 4, false}) {}
};

// Thrown where memory is taken, so that whoever is ready for having none left is ready for it.
class OverMemoryLimit : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "over the limit of all REST requests"; }
};

// What one request has taken. Used by one thread at a time.
class RequestMemory {
 public:
  // Without a limit nothing is counted. `limit` outlives the request. `host`: its client's; null:
  // one of its own.
  explicit RequestMemory(MemoryLimit* limit = nullptr,
                         std::shared_ptr<net::Budget::Account> host = nullptr);
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
  const std::shared_ptr<net::Budget::Account> host_;
  size_t taken_ = 0;
  size_t refused_ = 0;  // what it would have taken
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
