#include "server/callers/callers.h"

#include <algorithm>
#include <functional>
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

namespace {

constexpr size_t kMaxNameBytes = 128;

// Only short printable ASCII is accepted, because names appear in answers, logs, metrics and pages.
std::string_view NameOf(std::string_view sent) {
  const bool is_name =
      sent.size() <= kMaxNameBytes &&
      std::all_of(sent.begin(), sent.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_name ? sent : std::string_view();
}

}  // namespace

Caller::Caller(Callers* callers, std::string_view sent)
    : counts_(*callers->counts().Of(NameOf(sent))) {
  const std::string_view name = NameOf(sent);
  if (name.empty()) return;
  const std::string key = "caller:" + std::string(name);
  client_ = std::max<uint64_t>(1, std::hash<std::string>()(key));
}

void Caller::Count(int64_t rows, std::chrono::nanoseconds run_time) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  counts_.requests.fetch_add(1, kRelaxed);
  counts_.rows.fetch_add(rows, kRelaxed);
  counts_.run_nanoseconds.fetch_add(run_time.count(), kRelaxed);
}

}  // namespace colcast::callers
