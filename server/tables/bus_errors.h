// Keeps the process alive if it reads a mapped file that was truncated or that the disk can no
// longer read (SIGBUS). The signal handler replaces the page with zeros and sets a flag. The reader
// continues, and its caller discards the data.
#ifndef COLCAST_SERVER_TABLES_BUS_ERRORS_H_
#define COLCAST_SERVER_TABLES_BUS_ERRORS_H_

#include <atomic>
#include <cstddef>

namespace colcast::tables {

// While a guard exists, a SIGBUS within its range sets `*failed`. Any other SIGBUS goes to the
// previous handler.
class BusErrorGuard {
 public:
  // `failed` must outlive the guard. A guard created while kMost others exist guards nothing.
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
