#include "server/scheduling/run_memory.h"

#include <algorithm>
#include <utility>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

namespace {

constexpr double kFading = 0.99;          // decay of a peak per lower observation
constexpr double kResolution = 64 << 10;  // resolution of an observed peak (AllocationPeak)
constexpr double kMost = 1e18;

}  // namespace

void MemoryEstimate::Observe(int64_t input_bytes, int64_t bytes) {
  if (input_bytes < 1 || bytes < 1) return;
  const auto input = static_cast<double>(input_bytes);
  auto taken = static_cast<double>(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (smallest_.bytes > 0) taken = std::min(taken, kMostTimes * At(input));
  auto& [largest, second] = runs_[BitsOf(input_bytes)];
  if (taken >= kFading * largest.bytes) {
    second = std::exchange(largest, {input, taken});
  } else {
    largest.bytes *= kFading;
    if (taken >= kFading * second.bytes) {
      second = {input, taken};
    } else {
      second.bytes *= kFading;
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
  return static_cast<int64_t>(std::min(kMost, At(static_cast<double>(input_bytes))));
}

namespace {

// Smaller runs do not query the available memory, because the query reads files.
constexpr int64_t kMuch = 64 << 20;

}  // namespace

RunMemory::Share::~Share() {
  if (memory_ != nullptr) memory_->taken_.fetch_sub(bytes_, std::memory_order_acq_rel);
}

RunMemory::Answer RunMemory::Reserve(int64_t bytes, Share* share) {
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

}  // namespace colcast::scheduling
