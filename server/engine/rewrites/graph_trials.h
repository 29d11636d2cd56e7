// Requests that graphs are tried on when a model is loaded.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/id_ranges.h"
#include "server/engine/rewrites/trial_feeds.h"
#include "serving_patches/expansion_rule.h"

namespace colcast::engine {

// A signature's graph: computes its outputs, in an order that all its forms share, from its inputs.
using GraphRun = std::function<absl::Status(const Tensors& feeds, Tensors* outputs)>;

// Seconds of work since some moment.
using WorkClock = std::function<double()>;

// Whether so many seconds of work are left.
using HasTime = std::function<bool(double seconds)>;

// The thread's CPU time where graphs run on the thread that asks, so that others on a busy machine
// do not count; otherwise the time that passes.
WorkClock WorkClockOf(bool on_callers_thread);

// What the graph as it was saved answers.
struct Trial {
  TrialFeeds feeds;
  Tensors outputs;
  bool recorded = false;  // made of a request that was recorded with the model
  double seconds = 0;     // that took
  int kind = 0;  // those of one kind have the same first rows; -1: has no other of its kind
};

// What the graph as it was saved refuses.
struct Refused {
  TrialFeeds feeds;
  absl::StatusCode code;
};

struct Trials {
  std::vector<Trial> answered;   // fewest rows first
  std::vector<Refused> refused;  // ids and indices that are no rows
  std::string why_none;          // if none is answered: the last error
  bool lacked_time = false;      // whether some were left out for that
};

// How many rows trials have, and how long they may take.
struct TrialLimits {
  std::vector<int64_t> rows = {1, 2, 20, 100, 500};  // rising
  int graphs = 2;                                    // that are to run each trial
  double seconds = 0;                                // for all trials on all graphs
  IdRanges ids = {};                                 // of the inputs
  KnownRows known = {};                              // of inputs that are states
};

// Runs the graph on recorded feeds, as they are and with other numbers of rows, and on generated
// ones, whose ids are of all rows of a table where the graph takes them, and one beyond; what has
// an index of another domain's rows runs on one of these and on several, and with one that is none.
// More rows are left out where they would take too long. None is answered where already the first
// run takes all the time.
Trials RunTrials(absl::Span<const DeclaredInput> inputs, const std::vector<TrialFeeds>& recorded,
                 const GraphRun& original, const TrialLimits& limits, const WorkClock& clock);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GRAPH_TRIALS_H_
