// Statistics of the process's allocator, if it is jemalloc (server/allocator.cc).
#ifndef COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_
#define COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_

#include <cstdint>

namespace colcast {

// Measures the largest amount of memory, with a resolution of about 64 KiB, that the calling thread
// held at once among its allocations since construction. A thread measures one thing at a time.
class AllocationPeak {
 public:
  AllocationPeak();
  int64_t bytes() const;  // 0 with another allocator
};

// Bytes of address space that were freed and are kept for later allocations.
int64_t ReusableAddressSpace();

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_
