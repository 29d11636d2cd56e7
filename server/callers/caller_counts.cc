#include "server/callers/caller_counts.h"

#include <mutex>

namespace colcast::callers {
namespace {

CallerStats Read(std::string_view caller, const CallerCounts::Counts& counts) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  CallerStats stats;
  stats.caller = caller;
  stats.requests = counts.requests.load(kRelaxed);
  stats.rows = counts.rows.load(kRelaxed);
  stats.run_time = std::chrono::nanoseconds(counts.run_nanoseconds.load(kRelaxed));
  return stats;
}

}  // namespace

CallerCounts::Counts* CallerCounts::Of(std::string_view caller) {
  if (caller.empty() || caller == kWithoutName) return &without_name_;
  if (caller == kOther) return &other_;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = counts_.find(caller);
    if (found != counts_.end()) return found->second.get();
    if (counts_.size() >= kMost) return &other_;
  }
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  if (counts_.size() >= kMost) return &other_;
  const auto [at, is_new] = counts_.try_emplace(std::string(caller));
  if (is_new) at->second = std::make_unique<Counts>();
  return at->second.get();
}

std::vector<CallerStats> CallerCounts::All() const {
  std::vector<CallerStats> all;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    for (const auto& [caller, counts] : counts_) all.push_back(Read(caller, *counts));
  }
  all.push_back(Read(kWithoutName, without_name_));
  all.push_back(Read(kOther, other_));
  return all;
}

}  // namespace colcast::callers
