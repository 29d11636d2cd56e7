// Counts what each caller has sent. Clients can make up any number of names, so callers beyond the
// first kMost are counted together.
#ifndef COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_
#define COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace colcast::callers {

struct CallerStats {
  std::string caller;                   // kWithoutName and kOther stand for several callers
  int64_t requests = 0;                 // answered requests, with any status
  int64_t rows = 0;                     // in requests answered OK
  std::chrono::nanoseconds run_time{};  // the caller's share in runs with several requests
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
    std::atomic<int64_t> run_nanoseconds{0};
  };

  // The counts of a caller, valid as long as this object. An empty name means a request without a
  // name. A caller that is really named kWithoutName or kOther shares those counts.
  Counts* Of(std::string_view caller);

  // Sorted by name; kWithoutName and kOther come last.
  std::vector<CallerStats> All() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<Counts>, std::less<>> counts_ ABSL_GUARDED_BY(mutex_);
  Counts without_name_;
  Counts other_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLER_COUNTS_H_
