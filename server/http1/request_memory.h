// The memory of request bodies and of data parsed from them, with a limit for all requests
// together.
#ifndef COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
#define COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_

#include <cstddef>
#include <memory>
#include <new>

#include "server/base/status.h"
#include "server/net/budget.h"

namespace colcast::http {

// A std::bad_alloc, so that code that handles a lack of memory also handles this.
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

  // Throws OverMemoryLimit, taking nothing, if there is no room.
  void Take(size_t bytes);
  void Return(size_t bytes);

  // The reason why Take() threw. Sets *final if the request alone exceeds the limit, so that
  // retrying is useless.
  Status Refusal(bool* final) const;

 private:
  net::MemoryLimit* const limit_;
  const std::shared_ptr<net::Budget::Account> host_;
  size_t taken_ = 0;
  size_t refused_ = 0;  // the bytes that the refused Take() asked for
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_REQUEST_MEMORY_H_
