// A rewrite: grouped lookups read their tables as int8. Scores stay close but not bit-identical.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// See Rewrite::apply. Changes the ColcastGroupedLookups that look up or sum rows of the named
// variables; control edges from reads of such a variable move to the lookup. Returns the number of
// tables read as int8.
absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_LOOKUPS_H_
