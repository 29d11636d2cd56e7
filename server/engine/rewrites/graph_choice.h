// Which of several graphs that compute the same is kept.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GRAPH_CHOICE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GRAPH_CHOICE_H_

#include <string>
#include <vector>

#include "server/engine/rewrites/graph_measurement.h"
#include "server/engine/rewrites/graph_proof.h"

namespace colcast::engine {

// What was found out about one candidate.
struct Candidate {
  std::string says;  // what it is: "14 lookups run as one op"
  Proof proof;
  std::vector<Measurement> measured;
  bool is_small = false;  // has tables in int8
};

struct Choice {
  int candidate = -1;  // -1: the graph as it was saved
  std::string why;     // of all candidates, with their figures; one line
};

// The candidate that is proved, at no number of rows more than 3 % slower than the original, and
// takes the smallest share of its time on average; less than 3 % of gain, or no more
// than the figures spread, are not worth a change.
// Memory comes first: if any of those is small, the fastest of the small ones, whatever its gain.
Choice ChooseGraph(const std::vector<Candidate>& candidates);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GRAPH_CHOICE_H_
