#include "server/http1/request_memory.h"

#include <utility>

namespace colcast::http {

RequestMemory::RequestMemory(net::MemoryLimit* limit, std::shared_ptr<net::Budget::Account> host)
    : limit_(limit),
      host_(limit == nullptr || host != nullptr ? std::move(host)
                                                : std::make_shared<net::Budget::Account>()) {}

void RequestMemory::Take(size_t bytes) {
  if (limit_ == nullptr) return;
  if (!limit_->Take(host_.get(), bytes)) {
    refused_ = taken_ + bytes;
    throw OverMemoryLimit();
  }
  taken_ += bytes;
}

void RequestMemory::Return(size_t bytes) {
  if (limit_ == nullptr) return;
  limit_->Return(host_.get(), bytes);
  taken_ -= bytes;
}

Status RequestMemory::Refusal(bool* final) const {
  const size_t most = limit_ == nullptr ? 0 : limit_->max_bytes_per_host();
  *final = limit_ != nullptr && refused_ > most;
  if (*final) {
    return ResourceExhausted("the request needs more than ", most,
                             " bytes of memory, three quarters of the ", limit_->max_bytes(),
                             " bytes for REST requests: the most for one host (--max_rest_bytes)");
  }
  return ResourceExhausted("the REST requests in flight leave no memory for this one: ",
                           limit_ == nullptr ? 0 : limit_->max_bytes(), " bytes for all, ", most,
                           " for those of one host (--max_rest_bytes); try again later");
}

}  // namespace colcast::http
