// What the process's allocator says of itself, where that is jemalloc (server/allocator.cc).
#ifndef COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_
#define COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_

#include <cstdint>

namespace colcast {

// The most that the calling thread has held at once, roughly (to 64 KiB), of what it has allocated
// since it began to be measured. A thread measures one thing at a time.
class AllocationPeak {
 public:
  AllocationPeak();
  int64_t bytes() const;  // 0 where the allocator is another
};

// Bytes of address space that were freed and are kept for what is allocated next.
int64_t ReusableAddressSpace();

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_ALLOCATOR_STATE_H_
