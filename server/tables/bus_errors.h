// Reading a mapped file that was truncated, or that the disk can no longer read, raises SIGBUS,
// which would end the process. Here the page is replaced with zeros and a flag is set: the reader
// continues, and its caller discards the data.
#ifndef COLCAST_SERVER_TABLES_BUS_ERRORS_H_
#define COLCAST_SERVER_TABLES_BUS_ERRORS_H_

#include <atomic>
#include <cstddef>

namespace colcast::tables {

// While a guard exists, a SIGBUS within its range sets `*failed`. Any other SIGBUS is handled as
// before.
class BusErrorGuard {
 public:
  // `failed` must outlive the guard. If more than kMost ranges exist at a time, the last ones are
  // not guarded.
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
