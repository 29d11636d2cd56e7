// Counts the outcomes of shadowed requests.
#ifndef COLCAST_SERVER_SHADOW_DRIFT_COUNTS_H_
#define COLCAST_SERVER_SHADOW_DRIFT_COUNTS_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/metrics/histogram.h"
#include "server/shadow/drift.h"

namespace colcast::shadow {

// Why a drawn request was not run.
enum class NotRun {
  kQueueFull,
  kBusy,       // no worker was idle within a second
  kNoMemory,   // for its copy or its run
  kNotServed,  // the shadow version is not loaded
};
inline constexpr int kNumNotRun = 4;
const char* NotRunName(NotRun reason);  // "queue_full"

// Two versions of a model that were compared.
struct Versions {
  std::string model;
  int64_t live = 0;
  int64_t shadow = 0;

  bool operator==(const Versions& other) const {
    return model == other.model && live == other.live && shadow == other.shadow;
  }
};

struct OutputCounts {
  std::string name;
  double largest = 0;  // largest difference so far
  // The largest difference in each request, in DifferenceBuckets().
  metrics::HistogramSnapshot difference;
  int64_t same_top10 = 0;  // number of requests
  int64_t other_top10 = 0;
};

struct VersionCounts {
  Versions versions;
  // Numbers of requests.
  int64_t compared = 0;
  int64_t other_form = 0;
  int64_t failed = 0;
  std::string last_error;  // empty if none failed
  std::vector<OutputCounts> outputs;
};

// All methods may be called from any thread.
class DriftCounts {
 public:
  void CountNotRun(const std::string& model, NotRun reason);
  void CountFailed(const Versions& versions, const Status& status);
  void CountCompared(const Versions& versions, const Drift& drift);

  // By model.
  std::map<std::string, std::array<int64_t, kNumNotRun>> not_run() const;
  // For the last kMaxVersions pairs of versions, in the order of their first comparison.
  std::vector<VersionCounts> versions() const;
  static constexpr size_t kMaxVersions = 32;

 private:
  struct Output {
    double largest = 0;
    metrics::Histogram difference{metrics::DifferenceBuckets()};
    int64_t same_top10 = 0;
    int64_t other_top10 = 0;
  };
  struct Pair {
    VersionCounts counts;  // except the outputs
    std::map<std::string, Output, std::less<>> outputs;
  };

  Pair& Find(const Versions& versions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::map<std::string, std::array<int64_t, kNumNotRun>> not_run_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Pair>> pairs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::shadow

#endif  // COLCAST_SERVER_SHADOW_DRIFT_COUNTS_H_
