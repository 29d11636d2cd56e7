// A rewrite: turns a Concat of many features' lookups into one ColcastGroupedLookup (lookup_op.h).
//
// A feature is recognized from the Concat back to its column, or to the first tensor that these ops
// do not explain:
//   [AsString], StringToHashBucketFast, FloorMod, Minimum, Maximum, ClipByValue, Cast between int32
//   and int64, and Keras' wrapping of negative ids, with constant arguments; then Gather, GatherV2
//   or ResourceGather of rows of a matrix; then Sum over a list's values, or their mean without
//   padding (list_patterns.h); in between, ops that only change the shape.
// Other inputs of the Concat are copied.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Changes `graph` in place and returns the number of lookups that became part of a group; 0 if
// nothing changed. The new ops have the names of the Concats that they replace; nodes that are no
// longer needed stay. Does not look beyond nodes named in `feeds`. The graph's results stay
// bit-identical, and so do the codes of its errors. If the graph cannot be read, returns that error
// and leaves it unchanged.
absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_
