#include "server/engine/rewrites/graph_trials.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr int64_t kValues[] = {50, 4, 1};

// One user, as most requests have, and one row of all other domains.
constexpr DomainRows kDomainRows[] = {{1, 4}, {4, 1}};
constexpr int64_t kBeyond = 2;    // rows of a request with ids that are no rows
constexpr int kRunsOfATrial = 2;  // by each graph, before it is measured

class Runner {
 public:
  Runner(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
         const GraphRun& original, const TrialLimits& limits, const WorkClock& clock)
      : inputs_(inputs),
        recorded_(recorded),
        original_(original),
        limits_(limits),
        clock_(clock),
        end_(clock() + limits.seconds),
        most_rows_(limits.rows.back()) {}

  Trials Run() {
    const auto unfit = std::find_if_not(inputs_.begin(), inputs_.end(), CanBeMade);
    if (unfit != inputs_.end()) {
      trials_.why_none = "no values can be made for input \"" + unfit->alias + "\"";
      return std::move(trials_);
    }
    for (const DomainRows& domains : kDomainRows) {
      if (!TryIds(domains)) TrySmallValues(domains);
      if (absl::c_none_of(inputs_, [](const auto& input) { return input.other_domain; })) break;
    }
    for (const TrialFeeds& feeds : recorded_) Try(feeds, true);
    for (const int64_t rows : limits_.rows) {
      if (rows > most_rows_ || !HasTimeFor(rows)) break;
      for (size_t kind = 0; kind < generated_.size(); ++kind) {
        Try(WithRows(inputs_, generated_[kind], rows), false, static_cast<int>(kind));
      }
      if (!recorded_.empty()) Try(WithRows(inputs_, recorded_.front(), rows), true);
    }
    std::stable_sort(trials_.answered.begin(), trials_.answered.end(),
                     [](const Trial& a, const Trial& b) { return a.feeds.rows < b.feeds.rows; });
    return std::move(trials_);
  }

 private:
  // Ids of all rows; of the smallest table that an input leads to, where those are refused; and
  // beside inputs of which no table is known, with smaller values of these.
  bool TryIds(const DomainRows& domains) {
    for (const int64_t values : kValues) {
      for (int64_t IdRange::*const rows : {&IdRange::most, &IdRange::least}) {
        Ends ends;
        for (const auto& [alias, range] : limits_.ids) ends[alias] = range.*rows;
        if (ends.empty()) return false;
        if (!TryGenerated(values, ends, domains)) continue;
        for (auto& [alias, end] : ends) ++end;
        TryBeyond(GenerateFeeds(inputs_, kBeyond, values, ends, domains));
        return true;
      }
    }
    return false;
  }

  void TrySmallValues(const DomainRows& domains) {
    for (const int64_t values : kValues) {
      if (TryGenerated(values, {}, domains)) return;
    }
  }

  // Whether such values are answered, which more rows have then, too.
  bool TryGenerated(int64_t values, const Ends& ends, const DomainRows& domains) {
    const TrialFeeds few = Generated(kFewTrialRows, values, ends, domains);
    most_rows_ = std::min(most_rows_, kMostTrialBytes / BytesInRow(few));
    if (!Try(few, false)) return false;
    generated_.push_back(Generated(most_rows_, values, ends, domains));
    for (TrialFeeds& feeds : WithRowsBeyond(inputs_, few, domains)) TryBeyond(std::move(feeds));
    return true;
  }

  TrialFeeds Generated(int64_t rows, int64_t values, const Ends& ends,
                       const DomainRows& domains) const {
    TrialFeeds feeds = GenerateFeeds(inputs_, rows, values, ends, domains);
    TakeKnown(inputs_, limits_.known, &feeds);
    return feeds;
  }

  void TryBeyond(TrialFeeds feeds) {
    Tensors outputs;
    double seconds = 0;
    if (!HasTimeFor(feeds.rows)) return;
    const absl::Status status = Run(feeds, &outputs, &seconds);
    if (!status.ok()) trials_.refused.push_back({std::move(feeds), status.code()});
  }

  static int64_t BytesInRow(const TrialFeeds& feeds) {
    size_t bytes = 1;
    for (const Tensor& tensor : feeds.tensors) bytes += tensor.TotalBytes();
    return static_cast<int64_t>(bytes) / feeds.rows + 1;
  }

  // Whether all graphs may run so many rows, judged by the last trial.
  bool HasTimeFor(int64_t rows) {
    const double more = std::max(1.0, static_cast<double>(rows) / static_cast<double>(last_rows_));
    const double wanted = last_seconds_ * more * limits_.graphs * kRunsOfATrial;
    if (wanted <= end_ - clock_()) return true;
    trials_.lacked_time = true;
    return false;
  }

  absl::Status Run(const TrialFeeds& feeds, Tensors* outputs, double* seconds) const {
    const double start = clock_();
    absl::Status status = original_(feeds.tensors, outputs);
    *seconds = clock_() - start;
    return status;
  }

  bool Try(TrialFeeds feeds, bool recorded, int kind = -1) {
    if (!HasTimeFor(feeds.rows)) return false;
    Trial trial;
    double seconds = 0;
    absl::Status status = Run(feeds, &trial.outputs, &seconds);
    if (!ran_ && status.ok()) {
      // The first run does work that later ones find done.
      ran_ = true;
      if (clock_() + seconds > end_) {
        trials_.lacked_time = true;
        trials_.why_none = absl::StrFormat("a run of %d rows takes %.3g s", feeds.rows, seconds);
        return false;
      }
      trial.outputs.clear();
      status = Run(feeds, &trial.outputs, &seconds);
    }
    trial.seconds = seconds;
    if (ran_) last_seconds_ = seconds;
    last_rows_ = std::max<int64_t>(1, feeds.rows);
    if (!status.ok()) {
      trials_.why_none = std::string(status.message());
      return false;
    }
    trial.feeds = std::move(feeds);
    trial.recorded = recorded;
    trial.kind = kind;
    trials_.answered.push_back(std::move(trial));
    return true;
  }

  const absl::Span<const DeclaredInput> inputs_;
  const std::vector<TrialFeeds>& recorded_;
  const GraphRun& original_;
  const TrialLimits& limits_;
  const WorkClock& clock_;
  const double end_;
  int64_t most_rows_;
  std::vector<TrialFeeds> generated_;
  bool ran_ = false;
  double last_seconds_ = 0;
  int64_t last_rows_ = 1;
  Trials trials_;
};

}  // namespace

WorkClock WorkClockOf(bool on_callers_thread) {
  if (!on_callers_thread) {
    return [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
  }
  return [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
}

Trials RunTrials(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
                 const GraphRun& original, const TrialLimits& limits, const WorkClock& clock) {
  return Runner(inputs, recorded, original, limits, clock).Run();
}

}  // namespace colcast::engine
