// What graphs that compute the same cost beside each other.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GRAPH_MEASUREMENT_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GRAPH_MEASUREMENT_H_

#include <cstdint>
#include <vector>

#include "server/engine/rewrites/graph_trials.h"

namespace colcast::engine {

// A graph against the one it was made of, at one number of rows. In every round all graphs run, one
// after the other; a share is the time of one round's run in that round's of the original.
struct Measurement {
  int64_t rows = 0;
  double original_seconds = 0;  // the median
  double share = 1;             // the median
  double spread = 0;            // half of what lies between the quartiles
  int rounds = 0;
};

// For each graph its measurements at the rows of the trials given, as far as `seconds` last; a
// number of rows has at least three rounds or none.
std::vector<std::vector<Measurement>> Measure(const std::vector<const Trial*>& trials,
                                              const GraphRun& original,
                                              const std::vector<GraphRun>& graphs, double seconds,
                                              const WorkClock& clock);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GRAPH_MEASUREMENT_H_
