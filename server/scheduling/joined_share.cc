#include "server/scheduling/joined_share.h"

#include <algorithm>

#include "server/scheduling/bits_of.h"

namespace colcast::scheduling {
namespace {

// Joining must save at least 3 %, because the joined requests wait for each other.
constexpr double kMostThatPays = 0.97;
constexpr double kMost = 2;  // cap on one observation, which a disturbance may inflate
constexpr double kShareOfNewest = 0.1;
constexpr double kDoubt = 0.003;  // share of the way back to paying, per refusal
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
  // Slightly below the limit; otherwise the estimate would only approach it.
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
