// Whether a rewritten graph answers as the graph it was made of.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GRAPH_PROOF_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GRAPH_PROOF_H_

#include <string>
#include <vector>

#include "server/engine/rewrites/graph_trials.h"

namespace colcast::engine {

struct Proof {
  bool holds = false;
  std::string says;  // the figures, or what was found: one clause
  bool lacked_time = false;
};

// A trial is not run on a graph without the time that the original took: what was not tried on all
// of them is not proved.

// Of every trial the same status, dtypes, shapes and bits; a NaN may be any NaN. Where the original
// does not repeat its own bits, as sums of TensorFlow do that depend on where memory begins, one of
// its answers must come.
Proof ProveSameBits(const std::vector<Trial>& trials, const GraphRun& original,
                    const GraphRun& rewritten, const HasTime& has_time);

// Of every trial: floats differ by at most `tolerance` of the largest value of their output, other
// types not at all. Where an output has one number a row, nine of ten rows that are among the 10,
// and the 100, largest stay among them. Rows that run with others beside them differ as little
// from what they are with fewer, where the original's do.
Proof ProveClose(const std::vector<Trial>& trials, const GraphRun& rewritten, double tolerance,
                 const HasTime& has_time);

// Adds to a proof that the graph refuses what the original refuses, with the same code.
void ProveRefusals(const std::vector<Refused>& refused, const GraphRun& rewritten, Proof* proof);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GRAPH_PROOF_H_
