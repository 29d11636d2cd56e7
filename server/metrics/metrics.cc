#include "server/metrics/metrics.h"

#include <atomic>
#include <numeric>

namespace colcast::metrics {
namespace {

using KeyView = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

}  // namespace

struct Metrics::Counters {
  std::array<std::atomic<int64_t>, kNumStatusCodes> answered{};
  Histogram latency{LatencyBuckets()};
  Histogram queue_wait{LatencyBuckets()};
  Histogram runtime{LatencyBuckets()};
  Histogram request_bytes{ByteBuckets()};
  Histogram response_bytes{ByteBuckets()};
  Histogram rows{RowBuckets()};
  std::atomic<int64_t> columns_sent_once{0};
  std::atomic<int64_t> bytes_saved{0};
  std::atomic<int64_t> transcoded_requests{0};
  std::atomic<int64_t> transcoded_rows{0};
  std::atomic<int64_t> repeated_bytes{0};
  Histogram run_requests{RowBuckets()};
  Histogram run_rows{RowBuckets()};
  std::atomic<int64_t> joined_requests{0};
  std::atomic<int64_t> split_requests{0};
  std::atomic<int64_t> slices{0};
};

int64_t RequestSeries::Answered() const {
  return std::accumulate(answered.begin(), answered.end(), int64_t{0});
}

int64_t RequestSeries::Failed() const {
  return Answered() - answered[static_cast<size_t>(StatusCode::kOk)];
}

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

void Metrics::Record(const RequestRecord& record) {
  Counters& counters = *FindOrMake(record);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  counters.answered[static_cast<size_t>(record.code)].fetch_add(1, kRelaxed);
  if (record.run_requests > 0) {
    counters.run_requests.Observe(record.run_requests);
    counters.run_rows.Observe(record.run_rows);
  }
  if (record.joined) counters.joined_requests.fetch_add(1, kRelaxed);
  if (!record.slice_waits.empty()) {
    counters.split_requests.fetch_add(1, kRelaxed);
    counters.slices.fetch_add(static_cast<int64_t>(record.slice_waits.size()), kRelaxed);
  }
  if (record.code != StatusCode::kOk) return;
  lane_waits_[record.long_lane].Observe(record.queue_wait);
  for (const auto wait : record.slice_waits) lane_waits_[1].Observe(wait);
  counters.latency.Observe(record.latency);
  counters.queue_wait.Observe(record.queue_wait);
  counters.runtime.Observe(record.runtime);
  counters.request_bytes.Observe(static_cast<int64_t>(record.request_bytes));
  counters.response_bytes.Observe(static_cast<int64_t>(record.response_bytes));
  counters.rows.Observe(record.expansion.rows);
  counters.columns_sent_once.fetch_add(record.expansion.columns_sent_once, kRelaxed);
  counters.bytes_saved.fetch_add(record.expansion.bytes_saved, kRelaxed);
  if (!record.expansion.transcoded) return;
  counters.transcoded_requests.fetch_add(1, kRelaxed);
  counters.transcoded_rows.fetch_add(record.expansion.rows, kRelaxed);
  counters.repeated_bytes.fetch_add(record.expansion.repeated_bytes, kRelaxed);
}

Metrics::Counters* Metrics::FindOrMake(const RequestRecord& record) {
  const KeyView key(record.model_name, record.signature_name, record.api, record.entrypoint);
  {
    std::shared_lock<std::shared_mutex> lock(requests_mutex_);
    const auto found = requests_.find(key);
    if (found != requests_.end()) return found->second.get();
  }
  auto made = std::make_unique<Counters>();
  std::unique_lock<std::shared_mutex> lock(requests_mutex_);
  return requests_.try_emplace(Key(key), std::move(made)).first->second.get();
}

void Metrics::RecordLoad(const std::string& model_path, bool succeeded,
                         std::chrono::nanoseconds latency) {
  std::lock_guard<std::mutex> lock(loads_mutex_);
  LoadSeries& load = FindOrMakeLoad(model_path);
  ++(succeeded ? load.succeeded : load.failed);
  if (succeeded) load.latency += latency;
}

void Metrics::RecordWarmup(const std::string& model_path, const std::string& status,
                           std::chrono::nanoseconds latency) {
  Histogram once(LatencyBuckets());
  once.Observe(latency);
  std::lock_guard<std::mutex> lock(loads_mutex_);
  FindOrMakeLoad(model_path).warmup[status].Add(once.Snapshot());
}

LoadSeries& Metrics::FindOrMakeLoad(const std::string& model_path) {
  for (LoadSeries& load : loads_) {
    if (load.model_path == model_path) return load;
  }
  if (loads_.size() == kMaxLoads) loads_.erase(loads_.begin());
  loads_.emplace_back().model_path = model_path;
  return loads_.back();
}

std::vector<RequestSeries> Metrics::Requests() const {
  std::vector<RequestSeries> all;
  std::shared_lock<std::shared_mutex> lock(requests_mutex_);
  for (const auto& [key, counters] : requests_) {
    RequestSeries& series = all.emplace_back();
    RequestLabels& labels = series.labels;
    std::tie(labels.model_name, labels.signature_name, labels.api, labels.entrypoint) = key;
    for (int code = 0; code < kNumStatusCodes; ++code) {
      series.answered[code] = counters->answered[code].load(std::memory_order_relaxed);
    }
    series.latency = counters->latency.Snapshot();
    series.queue_wait = counters->queue_wait.Snapshot();
    series.runtime = counters->runtime.Snapshot();
    series.request_bytes = counters->request_bytes.Snapshot();
    series.response_bytes = counters->response_bytes.Snapshot();
    series.rows = counters->rows.Snapshot();
    series.columns_sent_once = counters->columns_sent_once.load(std::memory_order_relaxed);
    series.bytes_saved = counters->bytes_saved.load(std::memory_order_relaxed);
    series.transcoded_requests = counters->transcoded_requests.load(std::memory_order_relaxed);
    series.transcoded_rows = counters->transcoded_rows.load(std::memory_order_relaxed);
    series.repeated_bytes = counters->repeated_bytes.load(std::memory_order_relaxed);
    series.run_requests = counters->run_requests.Snapshot();
    series.run_rows = counters->run_rows.Snapshot();
    series.joined_requests = counters->joined_requests.load(std::memory_order_relaxed);
    series.split_requests = counters->split_requests.load(std::memory_order_relaxed);
    series.slices = counters->slices.load(std::memory_order_relaxed);
  }
  return all;
}

std::vector<LoadSeries> Metrics::Loads() const {
  std::lock_guard<std::mutex> lock(loads_mutex_);
  return loads_;
}

}  // namespace colcast::metrics
