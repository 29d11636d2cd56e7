#include "server/scheduling/memory_estimate.h"

#include <algorithm>

#include "server/scheduling/bits_of.h"

namespace colcast::scheduling {
namespace {

constexpr double kFading = 0.99;  // of a point, with each observation that is below it
constexpr double kMost = 1e18;

}  // namespace

void MemoryEstimate::Observe(int64_t input_bytes, int64_t bytes) {
  if (input_bytes < 1 || bytes < 1) return;
  const auto input = static_cast<double>(input_bytes);
  auto taken = static_cast<double>(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (smallest_.bytes > 0) taken = std::min(taken, kMostTimes * At(input));
  Point& point = points_[BitsOf(input_bytes)];
  if (taken >= kFading * point.bytes) {
    point = {input, taken};
  } else {
    point.bytes *= kFading;
  }
  Fit();
}

void MemoryEstimate::Fit() {
  const auto known = [](const Point& point) { return point.bytes > 0; };
  smallest_ = *std::find_if(points_.begin(), points_.end(), known);
  bool has_larger = false;
  slope_ = 0;
  for (const Point& point : points_) {
    // Two of about the same size say nothing about a slope.
    if (!known(point) || point.input < 2 * smallest_.input) continue;
    has_larger = true;
    slope_ = std::max(slope_, (point.bytes - smallest_.bytes) / (point.input - smallest_.input));
  }
  if (!has_larger) slope_ = smallest_.bytes / smallest_.input;
}

double MemoryEstimate::At(double input_bytes) const {
  if (smallest_.bytes == 0) return kFirstBytesPerByte * input_bytes;
  return smallest_.bytes + slope_ * std::max(0.0, input_bytes - smallest_.input);
}

int64_t MemoryEstimate::Of(int64_t input_bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(std::min(kMost, At(static_cast<double>(input_bytes))));
}

}  // namespace colcast::scheduling
