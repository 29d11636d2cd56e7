#include "server/scheduling/cost_estimate.h"

#include <algorithm>

namespace colcast::scheduling {

namespace {

// Weight of the newest observation in a point's moving average; the first few weigh more.
constexpr double kShareOfNewest = 0.1;
constexpr double kMaxWeight = 10;  // upper bound of a point's weight
// Each observation multiplies all points' weights by this.
constexpr double kFading = 0.999;
constexpr double kLeastWeight = 0.01;  // points with less are dropped
// Weight of the prior assumption that the fixed cost is 0. It matters while sizes hardly differ.
constexpr double kPriorWeight = 0.0001;

constexpr CostEstimate::Duration kLongest = std::chrono::hours(24);

// Sizes with a lower relative variance (variance over squared mean) are too close together to
// determine the fixed cost. Two equally frequent sizes must differ by about a factor of two.
constexpr double kLeastSpread = 0.115;
constexpr double kLeastShareOfRows = 0.5;

}  // namespace

void CostEstimate::Observe(int64_t rows, Duration time) {
  if (rows < 1) return;
  double nanoseconds = std::chrono::duration<double, std::nano>(time).count();
  const int bits = BitsOf(rows);
  std::lock_guard<std::mutex> lock(mutex_);
  const double expected = At(static_cast<double>(rows));
  if (expected > 0) nanoseconds = std::min(nanoseconds, kMostTimes * expected);
  highest_ = std::max(highest_, bits);
  for (int i = 0; i <= highest_; ++i) {
    points_[i].weight *= kFading;
    if (points_[i].weight < kLeastWeight) points_[i].weight = 0;
  }
  Point& point = points_[bits];
  const double share = std::max(kShareOfNewest, 1 / (point.weight + 1));
  point.rows += share * (static_cast<double>(rows) - point.rows);
  point.time += share * (nanoseconds - point.time);
  point.weight = std::min(point.weight + 1, kMaxWeight);
  line_ = Fit();
}

// Weighted least squares on relative errors: each residual is divided by its point's time.
CostEstimate::Line CostEstimate::Fit() const {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (int i = 0; i <= highest_; ++i) {
    const Point& point = points_[i];
    if (point.weight == 0 || point.time <= 0) continue;
    const double weight = point.weight / (point.time * point.time);
    w += weight;
    x += weight * point.rows;
    y += weight * point.time;
    xx += weight * point.rows * point.rows;
    xy += weight * point.rows * point.time;
  }
  if (w == 0) return {};
  const double mean_rows = x / w;
  const double mean_time = y / w;
  const double prior = kPriorWeight * mean_rows * mean_rows;
  const double variance = xx / w - mean_rows * mean_rows;
  const double covariance = xy / w - mean_rows * mean_time;
  double slope = (covariance + prior * mean_time / mean_rows) / (variance + prior);
  // Without this bound, noise could make the whole cost of a request appear fixed. Such requests
  // are never split, so no smaller size would ever correct the estimate.
  if (variance < kLeastSpread * mean_rows * mean_rows) {
    slope = std::max(slope, kLeastShareOfRows * mean_time / mean_rows);
  }
  if (slope <= 0) return {mean_time, 0};
  const double fixed = mean_time - slope * mean_rows;
  if (fixed < 0) return {0, xy / xx};
  return {fixed, slope};
}

CostEstimate::Line CostEstimate::line() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return line_;
}

CostEstimate::Duration CostEstimate::Of(int64_t rows) const {
  const Line known = line();
  const std::chrono::duration<double, std::nano> time(known.fixed +
                                                      known.per_row * static_cast<double>(rows));
  return time < kLongest ? std::chrono::duration_cast<Duration>(time) : kLongest;
}

namespace {

// Joining must save at least 3%, because the joined requests wait for each other.
constexpr double kMostThatPays = 0.97;
constexpr double kMost = 2;       // limit for one observation, which other load may inflate
constexpr double kDoubt = 0.003;  // how far each refusal moves a ratio back toward paying
constexpr int kOneAloneOf = 16;

}  // namespace

JoinedShare::JoinedShare() {
  for (Share& share : shares_) share.store(kMostThatPays, std::memory_order_relaxed);
}

void JoinedShare::Observe(int64_t rows, CostEstimate::Duration alone,
                          CostEstimate::Duration together) {
  if (alone.count() <= 0) return;
  const double seen =
      std::min(kMost, static_cast<double>(together.count()) / static_cast<double>(alone.count()));
  Share& share = shares_[BitsOf(rows)];
  const double before = share.load(std::memory_order_relaxed);
  share.store(before + kShareOfNewest * (seen - before), std::memory_order_relaxed);
}

bool JoinedShare::Pays(int64_t rows) {
  Share& share = shares_[BitsOf(rows)];
  const double known = share.load(std::memory_order_relaxed);
  if (known <= kMostThatPays) return true;
  // The target lies slightly below the limit, because the ratio only approaches it.
  const double paying = kMostThatPays - kDoubt;
  share.store(known - kDoubt * (known - paying), std::memory_order_relaxed);
  return false;
}

double JoinedShare::Of(int64_t rows) const {
  return std::min(1.0, shares_[BitsOf(rows)].load(std::memory_order_relaxed));
}

bool JoinedShare::WantsOneAlone() {
  return runs_.fetch_add(1, std::memory_order_relaxed) % kOneAloneOf == kOneAloneOf - 1;
}

}  // namespace colcast::scheduling
