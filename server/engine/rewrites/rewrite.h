// The interface of graph rewrites, and the lists of them.
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
  std::string_view name;  // e.g. "grouped lookups"
  std::string_view does;  // the text after a count, such as " lookups run as one op"

  // Changes a signature's graph in place, using ops whose names begin with "Colcast"; the rest of
  // the graph stays as it is. Does not look beyond nodes named in `feeds`. Returns the number of
  // places changed. If the graph cannot be read, returns that error and leaves the graph unchanged.
  std::function<absl::StatusOr<int>(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph)>
      apply;
};

// In the order in which they are applied. Each keeps outputs bit-identical for every input, and
// pays wherever it applies, since one op does the work of many.
std::vector<Rewrite> ExactRewrites();

// Rewrites that change outputs slightly; a choice file names those to apply (choice_file.h). Leaves
// out those whose instructions the CPU lacks. `tables`: variables that may be read as int8.
std::vector<Rewrite> FastRewrites(const CpuFlags& cpu, const std::set<std::string>& tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITE_H_
