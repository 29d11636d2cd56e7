#include "server/http1/request_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace colcast::http {

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

// A block of at least `kMapped` bytes consists of whole pages.
void CountedBytes::Grow(size_t more) {
  static const size_t page = getpagesize();  // 64 KiB on some ARM64 kernels
  const size_t step = std::min(capacity_, std::max(kMapped, capacity_ / 8));
  size_t capacity = std::max({kLeast, size_ + more, capacity_ + step});
  if (capacity >= kMapped) capacity = (capacity + page - 1) / page * page;
  if (memory_ != nullptr) memory_->Take(capacity - capacity_);
  const bool was_mapped = capacity_ >= kMapped;
  void* grown = nullptr;
  if (was_mapped) {
    grown = mremap(data_, capacity_, capacity, MREMAP_MAYMOVE);
  } else if (capacity >= kMapped) {
    grown = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (grown != MAP_FAILED && size_ > 0) std::memcpy(grown, data_, size_);
    if (grown != MAP_FAILED) std::free(data_);
  } else {
    grown = std::realloc(data_, capacity);
  }
  if (grown == nullptr || grown == MAP_FAILED) {
    if (memory_ != nullptr) memory_->Return(capacity - capacity_);
    throw std::bad_alloc();
  }
  data_ = static_cast<uint8_t*>(grown);
  capacity_ = capacity;
}

void CountedBytes::Clear() {
  if (capacity_ >= kMapped) {
    munmap(data_, capacity_);
  } else {
    std::free(data_);
  }
  if (memory_ != nullptr && capacity_ > 0) memory_->Return(capacity_);
  data_ = nullptr;
  size_ = capacity_ = 0;
}

}  // namespace colcast::http
