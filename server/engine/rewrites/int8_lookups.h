// A rewrite: tables of grouped lookups are read in int8. Scores stay close; bits do not.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// As Rewrite::apply has it: changes the ColcastGroupedLookups that look up or sum rows of the
// variables named; what waits for a read of such a variable waits for the lookup. Returns how many
// tables are read in int8.
absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_
