// The callers who send requests. Each has its own turn in the queue and its own counts.
#ifndef COLCAST_SERVER_CALLERS_CALLERS_H_
#define COLCAST_SERVER_CALLERS_CALLERS_H_

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
#include <utility>
#include <vector>

namespace colcast::callers {

struct CallerStats {
  std::string caller;                   // kWithoutName and kOther stand for several callers
  int64_t requests = 0;                 // answered requests, with any status
  int64_t rows = 0;                     // rows in requests answered OK
  std::chrono::nanoseconds run_time{};  // of a run with several requests, the caller's share
};

inline constexpr char kWithoutName[] = "unnamed";
inline constexpr char kOther[] = "other";

// Counts what each caller has sent. Clients can make up any number of names, so callers beyond the
// first kMost are counted together. All methods may be called from any thread.
class CallerCounts {
 public:
  static constexpr size_t kMost = 100;

  struct Counts {
    std::atomic<int64_t> requests{0};
    std::atomic<int64_t> rows{0};
    std::atomic<int64_t> run_nanoseconds{0};
  };

  // Returns the counts of a caller, valid for the lifetime of this object. An empty name stands for
  // all callers without a name. A caller whose name is kWithoutName or kOther shares those counts.
  Counts* Of(std::string_view caller);

  // Sorted by name; kWithoutName and kOther come last.
  std::vector<CallerStats> All() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<Counts>, std::less<>> counts_ ABSL_GUARDED_BY(mutex_);
  Counts without_name_;
  Counts other_;
};

// Where the name of a request's caller comes from.
struct NameSource {
  std::string header;        // a header's name, in lower case; empty if no header is used
  bool certificate = false;  // whether the client's certificate names the caller
};

class Callers {
 public:
  explicit Callers(NameSource names) : names_(std::move(names)) {}

  const NameSource& names() const { return names_; }
  CallerCounts& counts() { return counts_; }

 private:
  const NameSource names_;
  CallerCounts counts_;
};

class Caller {
 public:
  // `sent` is the name that the client claims. A name that is not short printable ASCII is treated
  // as absent. `callers` must outlive this object.
  Caller(Callers* callers, std::string_view sent);

  // The number for Job::client(): the same for all requests of a caller; 0 without a name.
  uint64_t client() const { return client_; }

  // Counts an answered request. `rows` is 0 unless it was answered OK.
  void Count(int64_t rows, std::chrono::nanoseconds run_time);

 private:
  uint64_t client_ = 0;
  CallerCounts::Counts& counts_;
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_CALLERS_H_
