// What a rewrite of a graph is, and which there are.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/cpu_flags.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

struct Rewrite {
  std::string_view name;  // "grouped lookups"
  std::string_view does;  // behind a count: " lookups run as one op"
  bool exact;             // whether outputs keep their bits

  // Of the tolerance, how much its differences may take in the proof. Less than all where they
  // depend much on what a request holds: others are further apart than those that were tried.
  double tolerance_share;

  // Puts ops whose names begin with "Colcast" into the part of a graph that a signature needs; what
  // depends on none of them stays as it is. Looks no further back than the nodes `feeds`. Returns
  // how many places were changed. Errors are those of reading the graph, which is unchanged then.
  std::function<absl::StatusOr<int>(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph)>
      apply;

  // Pays wherever it finds something: no form goes without.
  bool always = false;
};

// In the order in which they are applied.
std::vector<Rewrite> ExactRewrites();

// Those whose outputs are close, without what a CPU would not gain by: that is not tried there.
// `tables`: variables that may be read in int8.
std::vector<Rewrite> FastRewrites(const CpuFlags& cpu, const std::set<std::string>& tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
