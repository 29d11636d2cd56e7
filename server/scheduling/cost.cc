#include "server/scheduling/cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

namespace {

constexpr double kPeakFading = 0.99;      // a peak's decay with each lower observation
constexpr double kResolution = 64 << 10;  // resolution of an observed peak (AllocationPeak)
constexpr double kMostBytes = 1e18;

}  // namespace

void MemoryEstimate::Observe(int64_t input_bytes, int64_t bytes) {
  if (input_bytes < 1 || bytes < 1) return;
  const auto input = static_cast<double>(input_bytes);
  auto taken = static_cast<double>(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (smallest_.bytes > 0) taken = std::min(taken, kMostTimes * At(input));
  auto& [largest, second] = runs_[BitsOf(input_bytes)];
  if (taken >= kPeakFading * largest.bytes) {
    second = std::exchange(largest, {input, taken});
  } else {
    largest.bytes *= kPeakFading;
    if (taken >= kPeakFading * second.bytes) {
      second = {input, taken};
    } else {
      second.bytes *= kPeakFading;
    }
  }
  Fit();
}

void MemoryEstimate::Fit() {
  smallest_ = Point();
  Point largest;
  slope_ = 0;
  for (const auto& [ignored, point] : runs_) {
    if (point.bytes == 0) continue;
    if (smallest_.bytes == 0) smallest_ = point;
    largest = point;
    // Sizes that differ by less than a factor of two do not determine a slope.
    if (point.input < 2 * smallest_.input) continue;
    slope_ = std::max(slope_, (point.bytes - smallest_.bytes) / (point.input - smallest_.input));
  }
  if (smallest_.bytes == 0) return;
  largest_input_ = largest.input;
  double by_the_byte = largest.bytes / largest.input;
  if (largest.bytes <= 2 * kResolution) by_the_byte = std::min(by_the_byte, kFirstBytesPerByte);
  slope_ = largest.input < 2 * smallest_.input ? by_the_byte : std::min(slope_, by_the_byte);
}

double MemoryEstimate::At(double input_bytes) const {
  if (smallest_.bytes == 0) return kFirstBytesPerByte * input_bytes;
  const double far = std::max(0.0, input_bytes - std::max(kFarBytes, kFar * largest_input_));
  return smallest_.bytes + slope_ * std::max(0.0, input_bytes - far - smallest_.input) +
         std::max(slope_, kFirstBytesPerByte) * far;
}

int64_t MemoryEstimate::Of(int64_t input_bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(std::min(kMostBytes, At(static_cast<double>(input_bytes))));
}

namespace {

// Smaller runs do not query the available memory, because the query reads files.
constexpr int64_t kMuch = 64 << 20;

}  // namespace

RunBudget::Share::~Share() {
  if (memory_ != nullptr) memory_->taken_.fetch_sub(bytes_, std::memory_order_acq_rel);
}

RunBudget::Answer RunBudget::Reserve(int64_t bytes, Share* share) {
  if (bytes > max_bytes()) return Answer::kNever;
  int64_t others = taken_.load(std::memory_order_relaxed);
  if (bytes >= kMuch && bytes > options_.available() - others) return Answer::kNever;
  do {
    if (bytes > max_bytes() - others) return Answer::kLater;
  } while (!taken_.compare_exchange_weak(others, others + bytes, std::memory_order_acq_rel));
  share->memory_ = this;
  share->bytes_ = bytes;
  return Answer::kYes;
}

namespace {

// The shortest slice worth waking an idle worker for, in nanoseconds. Slicing costs about a quarter
// more CPU, which is too much for the few microseconds that a shorter slice would save.
constexpr double kShortestForIdle = 2e6;

}  // namespace

int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs) {
  const double all_rows = static_cast<double>(rows) * cost.per_row;
  double slices = 1;
  const bool someone_gains = needs.idle_workers > 0 || needs.longest != SliceNeeds().longest;
  if (cost.fixed + cost.per_row == 0) {
    if (someone_gains) slices = static_cast<double>(rows) / kRowsToLearnFrom;
  } else if (all_rows > 0) {
    const double longest = std::chrono::duration<double, std::nano>(needs.longest).count();
    // The time that each slice may spend on rows.
    const double for_rows = std::max(longest - cost.fixed, cost.fixed);
    if (cost.fixed + all_rows > longest) slices = for_rows > 0 ? all_rows / for_rows : 1;
    slices = std::max(slices, std::min(1.0 + needs.idle_workers, all_rows / kShortestForIdle));
    if (cost.fixed > 0) slices = std::min(slices, all_rows / cost.fixed);
  }
  const double at_least =
      std::ceil(static_cast<double>(rows) / static_cast<double>(needs.max_rows));
  slices = std::clamp(std::ceil(slices - 1e-9), std::max(1.0, at_least),
                      std::max(1.0, static_cast<double>(rows)));
  const auto count = static_cast<int64_t>(slices);
  return (rows + count - 1) / count;
}

}  // namespace colcast::scheduling
