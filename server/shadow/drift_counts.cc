#include "server/shadow/drift_counts.h"

#include <algorithm>
#include <cmath>

namespace colcast::shadow {
namespace {

// Cap on differences in sums, above all on infinite ones.
constexpr double kLargestObserved = 1000;

}  // namespace

const char* NotRunName(NotRun reason) {
  switch (reason) {
    case NotRun::kQueueFull:
      return "queue_full";
    case NotRun::kBusy:
      return "busy";
    case NotRun::kNoMemory:
      return "no_memory";
    case NotRun::kNotServed:
      return "not_served";
  }
  return "unknown";
}

void DriftCounts::CountNotRun(const std::string& model, NotRun reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++not_run_[model][static_cast<int>(reason)];
}

void DriftCounts::CountFailed(const Versions& versions, const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  VersionCounts& counts = Find(versions).counts;
  ++counts.failed;
  counts.last_error = status.message;
}

void DriftCounts::CountCompared(const Versions& versions, const Drift& drift) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Pair& pair = Find(versions);
  ++(drift.other_form ? pair.counts.other_form : pair.counts.compared);
  for (const OutputDrift& output : drift.outputs) {
    Output& own = pair.outputs[std::string(output.name)];
    own.largest = std::max(own.largest, output.difference);
    const double billionths = std::min(output.difference, kLargestObserved) * 1e9;
    own.difference.Observe(static_cast<int64_t>(std::ceil(billionths)));
    if (output.same_top10) ++(*output.same_top10 ? own.same_top10 : own.other_top10);
  }
}

DriftCounts::Pair& DriftCounts::Find(const Versions& versions) {
  for (const auto& pair : pairs_) {
    if (pair->counts.versions == versions) return *pair;
  }
  if (pairs_.size() == kMaxVersions) pairs_.pop_front();
  pairs_.push_back(std::make_unique<Pair>());
  pairs_.back()->counts.versions = versions;
  return *pairs_.back();
}

std::map<std::string, std::array<int64_t, kNumNotRun>> DriftCounts::not_run() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return not_run_;
}

std::vector<VersionCounts> DriftCounts::versions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<VersionCounts> all;
  for (const auto& pair : pairs_) {
    VersionCounts& counts = all.emplace_back(pair->counts);
    for (const auto& [name, output] : pair->outputs) {
      counts.outputs.push_back({name, output.largest, output.difference.Snapshot(),
                                output.same_top10, output.other_top10});
    }
  }
  return all;
}

}  // namespace colcast::shadow
