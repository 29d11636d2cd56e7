// The server's metrics, which endpoints and models record for the metrics page and status page.
#ifndef COLCAST_SERVER_METRICS_METRICS_H_
#define COLCAST_SERVER_METRICS_METRICS_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "server/base/status.h"
#include "server/metrics/call_record.h"
#include "server/metrics/histogram.h"

namespace colcast::metrics {

// Thread-safe, and cheap enough for every request: an observation costs two relaxed additions.
class Histogram {
 public:
  // `buckets` must outlive the histogram.
  explicit Histogram(const Buckets& buckets);

  void Observe(int64_t value);
  // A concurrent observation may be included in the counts, in the sum, in both or in neither.
  HistogramSnapshot Snapshot() const;

 private:
  const Buckets& buckets_;
  const std::unique_ptr<std::atomic<int64_t>[]> counts_;
  std::atomic<int64_t> sum_{0};
};

struct RequestLabels {
  std::string model_name;  // empty if no model was found
  std::string signature_name;
  std::string api;
  std::string entrypoint;
};

// The counts for the calls of one series since the server started.
struct RequestSeries {
  RequestLabels labels;
  std::array<int64_t, kNumStatusCodes> answered{};  // by status code
  // Indexed like kCallMetrics; a metric with buckets has a histogram, any other a count.
  std::array<HistogramSnapshot, kNumCallMetrics> histograms;
  std::array<int64_t, kNumCallMetrics> counts{};
};

// All methods may be called from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Takes well under a microsecond: it adds to atomic counters, and only the first request of a
  // series allocates memory. The number of models and signatures limits the number of series.
  void Record(const CallRecord& record);

  // Sorted by labels, compared field by field in the order of RequestLabels.
  std::vector<RequestSeries> Requests() const;

 private:
  struct Counters;
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  Counters* FindOrMake(const CallRecord& record);

  mutable std::shared_mutex requests_mutex_;  // guards the map; entries do not move
  std::map<Key, std::unique_ptr<Counters>, std::less<>> requests_ ABSL_GUARDED_BY(requests_mutex_);
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_METRICS_H_
