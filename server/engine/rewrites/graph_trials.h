// Requests that graphs are tried on when a model is loaded.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

using Tensors = std::vector<tensorflow::Tensor>;

// A signature's graph: computes its outputs, in an order that all its forms share, from its inputs.
using GraphRun = std::function<absl::Status(const Tensors& feeds, Tensors* outputs)>;

// Seconds of work since some moment.
using WorkClock = std::function<double()>;

// Whether so many seconds of work are left.
using HasTime = std::function<bool(double seconds)>;

// The thread's CPU time where graphs run on the thread that asks, so that others on a busy machine
// do not count; otherwise the time that passes.
WorkClock WorkClockOf(bool on_callers_thread);

// One tensor for each input of a signature, of so many rows.
struct TrialFeeds {
  int64_t rows = 1;
  Tensors tensors;
};

// What the graph as it was saved answers.
struct Trial {
  TrialFeeds feeds;
  Tensors outputs;
  bool recorded = false;  // made of a request that was recorded with the model
  double seconds = 0;     // that took
};

struct Trials {
  std::vector<Trial> answered;  // fewest rows first
  std::string why_none;         // if there is none: the last error
};

// How many rows trials have, and how long they may take.
struct TrialLimits {
  std::vector<int64_t> rows = {1, 2, 20, 100, 500};  // rising
  int graphs = 2;                                    // that are to run each trial
  double seconds = 0;                                // for all trials on all graphs
};

// The same rows again and again, or the first of them.
TrialFeeds WithRows(absl::Span<const DeclaredInput> inputs, const TrialFeeds& feeds, int64_t rows);

// Random feeds: integers and decimals in strings below `values`, floats around 0. Dimensions that
// are not declared are 3; a length is at most that; of other domains there are four rows.
TrialFeeds GenerateFeeds(absl::Span<const DeclaredInput> inputs, int64_t rows, int64_t values);

// Runs the graph on recorded feeds, as they are and with other numbers of rows, and on generated
// ones. More rows are left out where they would take too long. None is answered where already the
// first run takes all the time.
Trials RunTrials(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
                 const GraphRun& original, const TrialLimits& limits, const WorkClock& clock);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_
