#include "server/metrics/metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace colcast::metrics {

Histogram::Histogram(const Buckets& buckets)
    : buckets_(buckets), counts_(new std::atomic<int64_t>[buckets.bounds.size() + 1]()) {}

void Histogram::Observe(int64_t value) {
  const auto bucket = std::lower_bound(buckets_.bounds.begin(), buckets_.bounds.end(), value);
  counts_[bucket - buckets_.bounds.begin()].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

HistogramSnapshot Histogram::Snapshot() const {
  HistogramSnapshot snapshot;
  snapshot.buckets = &buckets_;
  snapshot.counts.resize(buckets_.bounds.size() + 1);
  for (size_t i = 0; i < snapshot.counts.size(); ++i) {
    snapshot.counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  snapshot.sum = sum_.load(std::memory_order_relaxed);
  return snapshot;
}

namespace {

using KeyView = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

}  // namespace

struct Metrics::Counters {
  Counters() {
    for (size_t i = 0; i < kNumCallMetrics; ++i) {
      const auto buckets = kCallMetrics[i].buckets;
      if (buckets != nullptr) histograms[i].emplace(buckets());
    }
  }

  // Observes the value of each row of kCallMetrics, with each row's function inlined.
  template <size_t... kRows>
  void Observe(const CallRecord& record, bool is_ok, std::index_sequence<kRows...>) {
    (ObserveRow<kRows>(record, is_ok), ...);
  }
  template <size_t kRow>
  void ObserveRow(const CallRecord& record, bool is_ok) {
    constexpr const CallMetric& kMetric = kCallMetrics[kRow];
    if (!is_ok && kMetric.of == CallMetric::Of::kAnsweredOk) return;
    const int64_t value = kMetric.value(record);
    if (kMetric.buckets != nullptr) {
      if (value >= 0) histograms[kRow]->Observe(value);
    } else if (value > 0) {
      counts[kRow].fetch_add(value, std::memory_order_relaxed);
    }
  }

  std::array<std::atomic<int64_t>, kNumStatusCodes> answered{};
  std::array<std::optional<Histogram>, kNumCallMetrics> histograms;  // nullopt for a counter
  std::array<std::atomic<int64_t>, kNumCallMetrics> counts{};
};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

void Metrics::Record(const CallRecord& record) {
  Counters& counters = *FindOrMake(record);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const bool is_ok = record.code == StatusCode::kOk;
  counters.answered[static_cast<size_t>(record.code)].fetch_add(1, kRelaxed);
  counters.Observe(record, is_ok, std::make_index_sequence<kNumCallMetrics>());
}

Metrics::Counters* Metrics::FindOrMake(const CallRecord& record) {
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
    for (size_t i = 0; i < kNumCallMetrics; ++i) {
      const std::optional<Histogram>& histogram = counters->histograms[i];
      if (histogram) series.histograms[i] = histogram->Snapshot();
      series.counts[i] = counters->counts[i].load(std::memory_order_relaxed);
    }
  }
  return all;
}

}  // namespace colcast::metrics
