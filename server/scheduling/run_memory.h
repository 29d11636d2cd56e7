// The estimated memory that all runs in flight share.
#ifndef COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_
#define COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

namespace colcast::scheduling {

// All methods may be called from any thread.
class RunMemory {
 public:
  struct Options {
    int64_t max_bytes = std::numeric_limits<int64_t>::max();
    // The memory that the process can still use; asked only for large runs.
    std::function<int64_t()> available = [] { return std::numeric_limits<int64_t>::max(); };
  };

  // A run's reservation, given back by the destructor.
  class Share {
   public:
    Share() = default;
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    friend class RunMemory;
    RunMemory* memory_ = nullptr;
    int64_t bytes_ = 0;
  };

  enum class Answer {
    kYes,
    kLater,  // once other runs have given memory back
    kNever,  // more than there is in total
  };

  explicit RunMemory(Options options) : options_(std::move(options)) {}

  Answer Reserve(int64_t bytes, Share* share);
  // Whether Reserve() would answer something other than kLater.
  bool MayRun(int64_t bytes) const {
    return bytes > max_bytes() || bytes <= max_bytes() - taken_.load(std::memory_order_relaxed);
  }

  int64_t max_bytes() const { return options_.max_bytes; }

 private:
  const Options options_;
  std::atomic<int64_t> taken_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_
