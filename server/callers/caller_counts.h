// What callers have asked so far. Clients can make up any number of names: those beyond kMost are
// counted together.
#ifndef COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_
#define COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/callers/quotas.h"

namespace colcast::callers {

struct CallerStats {
  std::string caller;    // kWithoutName, kOther: of several
  int64_t requests = 0;  // answered, with whatever status
  int64_t rows = 0;      // of those that were answered OK
  std::array<int64_t, kNumLimits> refused{};
  std::chrono::nanoseconds run_time{};  // of runs that several requests shared, their part
};

inline constexpr char kWithoutName[] = "unnamed";
inline constexpr char kOther[] = "other";

// All methods may be called from any thread.
class CallerCounts {
 public:
  static constexpr size_t kMost = 100;

  struct Counts {
    std::atomic<int64_t> requests{0};
    std::atomic<int64_t> rows{0};
    std::array<std::atomic<int64_t>, kNumLimits> refused{};
    std::atomic<int64_t> run_nanoseconds{0};
  };

  // From now on these have counts of their own, however many others there are.
  void Keep(const std::vector<std::string>& callers);

  // Of a caller; stays where it is. Empty: one without a name. One that is called as those of
  // several are is counted with them.
  Counts* Of(std::string_view caller);

  // By name, those of several last.
  std::vector<CallerStats> All() const;

 private:
  mutable std::shared_mutex mutex_;  // of the map; its entries stay where they are
  std::map<std::string, std::unique_ptr<Counts>, std::less<>> counts_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, by Keep()
  Counts without_name_;
  Counts other_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_
