// Compares two answers to one request, with the measures of `colcast compare` (docs/compare.md),
// and counts the outcomes.
#ifndef COLCAST_SERVER_SHADOW_DRIFT_H_
#define COLCAST_SERVER_SHADOW_DRIFT_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/metrics/histogram.h"
#include "server/wire/predict_response.h"

namespace colcast::shadow {

// A copy of a version's answer, kept until it is compared.
class KeptOutputs {
 public:
  KeptOutputs() = default;
  explicit KeptOutputs(const std::vector<OutputColumn>& outputs);
  KeptOutputs(KeptOutputs&&) = default;
  KeptOutputs& operator=(KeptOutputs&&) = default;

  const std::vector<OutputColumn>& columns() const { return columns_; }

 private:
  struct Kept {
    std::string name;
    std::vector<int64_t> dims;
    std::string bytes;
    std::vector<std::string> strings;
  };

  std::vector<std::unique_ptr<Kept>> kept_;
  std::vector<OutputColumn> columns_;  // point into kept_
};

// The number of elements of an output.
int64_t CountOf(const OutputColumn& output);

// An output that both answers have with the same dtype and shape.
struct OutputDrift {
  std::string_view name;
  // The largest absolute difference between values. NaN equals NaN. A number and NaN, or different
  // values of a dtype that is not numeric, differ infinitely.
  double difference = 0;
  // Whether both answers have the same ten best candidates, in any order. NaN is the lowest score;
  // of equal scores, the first one ranks higher. Set only for outputs with more than ten
  // candidates and one number for each.
  std::optional<bool> same_top10;
};

struct Drift {
  std::vector<OutputDrift> outputs;
  bool other_form = false;  // an output is missing, or has another dtype or shape
};

// The names point into `live`.
Drift Compare(const std::vector<OutputColumn>& live, const std::vector<OutputColumn>& shadow);

// Why a drawn request was not run.
enum class NotRun {
  kQueueFull,
  kBusy,       // no worker was idle within a second
  kNoMemory,   // not enough memory to copy or run the request
  kNotServed,  // the shadow version is not loaded
};
inline constexpr int kNumNotRun = 4;
const char* NotRunName(NotRun reason);  // "queue_full"

// The two versions of a model that are compared.
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
  double largest = 0;                     // largest difference so far
  metrics::HistogramSnapshot difference;  // largest per request, in DifferenceBuckets()
  int64_t same_top10 = 0;                 // number of requests
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

  // How many drawn requests were not run, by model and NotRun.
  std::map<std::string, std::array<int64_t, kNumNotRun>> not_run() const;
  // The counts of the newest kMaxVersions pairs of versions, oldest pair first.
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
    VersionCounts counts;  // without `outputs`
    std::map<std::string, Output, std::less<>> outputs;
  };

  Pair& Find(const Versions& versions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::map<std::string, std::array<int64_t, kNumNotRun>> not_run_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Pair>> pairs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::shadow

#endif  // COLCAST_SERVER_SHADOW_DRIFT_H_
