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
  std::string_view does;  // after a count: " lookups run as one op"

  // Puts ops whose names begin with "Colcast" into the part of a graph that a signature needs; what
  // depends on none of them stays as it is. Looks no further back than the nodes `feeds`. Returns
  // how many places were changed. Errors are those of reading the graph, which is unchanged then.
  std::function<absl::StatusOr<int>(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph)>
      apply;
};

// In the order in which they are applied. Each keeps every bit, for every input, and pays wherever
// it finds something: one op does the work of many.
std::vector<Rewrite> ExactRewrites();

// Those whose outputs are close; an applied choice says which of them (choice_file.h). None that
// lacks its instructions. `tables`: variables that may be read in int8.
std::vector<Rewrite> FastRewrites(const CpuFlags& cpu, const std::set<std::string>& tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
