#include "server/http1/request_memory.h"

namespace colcast::http {

void RequestMemory::Take(size_t bytes) {
  if (limit_ == nullptr) return;
  if (limit_->taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_->bytes_) {
    limit_->taken_.fetch_sub(bytes, std::memory_order_relaxed);
    refused_ = taken_ + bytes;
    throw OverMemoryLimit();
  }
  taken_ += bytes;
}

void RequestMemory::Return(size_t bytes) {
  if (limit_ == nullptr) return;
  limit_->taken_.fetch_sub(bytes, std::memory_order_relaxed);
  taken_ -= bytes;
}

Status RequestMemory::Refusal(bool* final) const {
  *final = limit_ != nullptr && refused_ > limit_->bytes();
  const size_t limit = limit_ == nullptr ? 0 : limit_->bytes();
  if (*final) {
    return ResourceExhausted("the request takes over ", limit,
                             " bytes of memory, the limit of all REST requests (--max_rest_bytes)");
  }
  return ResourceExhausted("the REST requests in flight leave no memory for this one: ", limit,
                           " bytes for all (--max_rest_bytes); try again later");
}

}  // namespace colcast::http
