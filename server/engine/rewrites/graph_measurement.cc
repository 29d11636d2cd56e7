#include "server/engine/rewrites/graph_measurement.h"

#include <algorithm>
#include <cmath>

namespace colcast::engine {
namespace {

constexpr int kLeastRounds = 3;
constexpr int kMostRounds = 15;
constexpr double kLeastSeconds = 0.0005;  // of a graph's runs in one round: less is the clock's
constexpr int kMostRuns = 50;             // of a graph in one round

double At(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

// All rounds at one number of rows.
class Rounds {
 public:
  Rounds(const Trial& trial, const std::vector<const GraphRun*>& graphs, const WorkClock& clock)
      : trial_(trial), graphs_(graphs), clock_(clock), seconds_(graphs.size()) {
    const double once = std::max(RunSeconds(0, 1), RunSeconds(0, 1) * 0.5);
    runs_ = std::clamp(static_cast<int>(kLeastSeconds / std::max(once, 1e-9)), 1, kMostRuns);
    for (size_t graph = 1; graph < graphs.size(); ++graph) RunSeconds(graph, 1);
  }

  int count() const { return static_cast<int>(seconds_[0].size()); }

  // Every graph; in every other round the last one first.
  void RunOne() {
    const bool forward = count() % 2 == 0;
    for (size_t i = 0; i < graphs_.size(); ++i) {
      const size_t graph = forward ? i : graphs_.size() - 1 - i;
      seconds_[graph].push_back(RunSeconds(graph, runs_));
    }
  }

  Measurement Of(size_t graph) const {
    std::vector<double> original = seconds_[0], shares;
    for (int i = 0; i < count(); ++i) {
      shares.push_back(seconds_[graph][i] / std::max(seconds_[0][i], 1e-12));
    }
    std::sort(original.begin(), original.end());
    std::sort(shares.begin(), shares.end());
    return {trial_.feeds.rows, At(original, 0.5), At(shares, 0.5),
            (At(shares, 0.75) - At(shares, 0.25)) / 2, count()};
  }

 private:
  // Of one run; an error, which the proof would have found, counts as its time.
  double RunSeconds(size_t graph, int runs) const {
    Tensors outputs;
    const double start = clock_();
    for (int i = 0; i < runs; ++i) {
      outputs.clear();
      (*graphs_[graph])(trial_.feeds.tensors, &outputs).IgnoreError();
    }
    return (clock_() - start) / runs;
  }

  const Trial& trial_;
  const std::vector<const GraphRun*>& graphs_;
  const WorkClock& clock_;
  int runs_ = 1;
  std::vector<std::vector<double>> seconds_;  // by graph, the original first; by round
};

}  // namespace

std::vector<std::vector<Measurement>> Measure(const std::vector<const Trial*>& trials,
                                              const GraphRun& original,
                                              const std::vector<GraphRun>& graphs, double seconds,
                                              const WorkClock& clock) {
  std::vector<const GraphRun*> all = {&original};
  for (const GraphRun& graph : graphs) all.push_back(&graph);
  std::vector<std::vector<Measurement>> measured(graphs.size());
  const double end = clock() + seconds;
  for (size_t i = 0; i < trials.size(); ++i) {
    // The time left is shared out evenly.
    const double start = clock();
    const double until = start + (end - start) / static_cast<double>(trials.size() - i);
    const double once = trials[i]->seconds * static_cast<double>(all.size());
    if (start >= end || start + once * (1 + kLeastRounds) > end) break;
    Rounds rounds(*trials[i], all, clock);
    while (rounds.count() < kMostRounds && (clock() < until || rounds.count() < kLeastRounds)) {
      if (rounds.count() < kLeastRounds && clock() >= end) break;
      rounds.RunOne();
    }
    if (rounds.count() < kLeastRounds) break;
    for (size_t graph = 0; graph < graphs.size(); ++graph) {
      measured[graph].push_back(rounds.Of(graph + 1));
    }
  }
  return measured;
}

}  // namespace colcast::engine
