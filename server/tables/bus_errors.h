// Reads of a mapped file that has been cut short, or that the disk no longer gives, raise SIGBUS,
// which ends a process. Here the page becomes zeros and a mark is set: the reader goes on, and its
// caller throws away what it read.
#ifndef COLCAST_SERVER_TABLES_BUS_ERRORS_H_
#define COLCAST_SERVER_TABLES_BUS_ERRORS_H_

#include <atomic>
#include <cstddef>

namespace colcast::tables {

// While it lives, SIGBUS within a range sets `*failed`. Any other SIGBUS is handled as before.
class BusErrorGuard {
 public:
  // `failed` must outlive the guard. Of more than kMost ranges at a time, the last are unguarded.
  static constexpr size_t kMost = 4096;
  BusErrorGuard(const void* begin, size_t size, std::atomic<bool>* failed);
  ~BusErrorGuard();
  BusErrorGuard(const BusErrorGuard&) = delete;
  BusErrorGuard& operator=(const BusErrorGuard&) = delete;

  bool guards() const { return slot_ < kMost; }

 private:
  size_t slot_ = 0;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_BUS_ERRORS_H_
