#include "server/metrics/recent.h"

#include <algorithm>
#include <utility>

#include "server/metrics/process_usage.h"

namespace colcast::metrics {
namespace {

constexpr size_t kLatency = CallMetricIndex(":colcast:request_latency_microseconds");
constexpr size_t kRows = CallMetricIndex(":colcast:rows");
constexpr size_t kBytesSaved = CallMetricIndex(":colcast:bytes_saved_total");

RecentSeries Summarize(const RequestSeries& series) {
  RecentSeries summary;
  summary.labels = series.labels;
  summary.answered = series.Answered();
  summary.failed = series.Failed();
  summary.rows = series.histograms[kRows].sum;
  summary.bytes_saved = series.counts[kBytesSaved];
  summary.latency = series.histograms[kLatency];
  return summary;
}

void Subtract(const RecentSeries& earlier, RecentSeries* later) {
  later->answered -= earlier.answered;
  later->failed -= earlier.failed;
  later->rows -= earlier.rows;
  later->bytes_saved -= earlier.bytes_saved;
  later->latency.Subtract(earlier.latency);
}

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

int64_t Answered(const std::vector<RecentSeries>& requests) {
  int64_t answered = 0;
  for (const RecentSeries& series : requests) answered += series.answered;
  return answered;
}

}  // namespace

void Recent::Add(Time now, const std::vector<RequestSeries>& requests, double cpu_seconds) {
  Sample sample{now, cpu_seconds, {}};
  sample.requests.reserve(requests.size());
  for (const RequestSeries& series : requests) sample.requests.push_back(Summarize(series));
  std::lock_guard<std::mutex> lock(mutex_);
  samples_.push_back(std::move(sample));
  // Once the second sample is old enough for the longest interval, the first is not needed.
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

Recent::Interval Recent::Last(std::chrono::seconds span) const {
  std::lock_guard<std::mutex> lock(mutex_);
  Interval interval;
  if (samples_.size() < 2) return interval;
  const Sample& end = samples_.back();
  const Sample* start = &samples_.front();
  for (const Sample& sample : samples_) {
    if (end.time - sample.time >= span) start = &sample;
  }
  interval.seconds = Seconds(end.time - start->time);
  interval.cpu_seconds = end.cpu_seconds - start->cpu_seconds;
  interval.requests = end.requests;
  // Series are sorted and never removed, so `end` contains those of `start`, in the same order.
  auto later = interval.requests.begin();
  for (const RecentSeries& earlier : start->requests) {
    later = std::find_if(later, interval.requests.end(), [&](const RecentSeries& series) {
      return series.labels == earlier.labels;
    });
    Subtract(earlier, &*later);
  }
  return interval;
}

std::vector<double> Recent::Rates() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<double> rates;
  for (size_t i = 1; i < samples_.size(); ++i) {
    const double seconds = Seconds(samples_[i].time - samples_[i - 1].time);
    const int64_t answered = Answered(samples_[i].requests) - Answered(samples_[i - 1].requests);
    rates.push_back(static_cast<double>(answered) / seconds);
  }
  return rates;
}

Sampler::Sampler(const Metrics* metrics) : metrics_(metrics), thread_("rates", [this] { Run(); }) {}

Sampler::~Sampler() { stop_.Set(); }

void Sampler::Run() {
  do {
    recent_.Add(std::chrono::steady_clock::now(), metrics_->Requests(),
                ReadProcessUsage().cpu_seconds);
  } while (!stop_.WaitFor(std::chrono::seconds(1)));
}

}  // namespace colcast::metrics
