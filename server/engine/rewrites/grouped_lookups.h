// A rewrite: a Concat of many features' lookups becomes one ColcastGroupedLookup (lookup_op.h).
//
// A feature is recognized behind its column, or behind whatever tensor its known ops begin at:
//   [AsString], StringToHashBucketFast, FloorMod, Minimum, Maximum, ClipByValue, Cast between int32
//   and int64, and Keras' wrapping of negative ids, with constants; then Gather, GatherV2 or
//   ResourceGather of rows of a matrix; then Sum over a list's values or their mean without
//   padding (masked_list.h); ops that only change the shape between them.
// All that meets it in a Concat of matrices and is no lookup is copied.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Changes `graph` in place; the new ops have the names of the Concats they replace, and what
// nothing needs any longer stays. Looks no further back than the nodes called `feeds`. Returns how
// many lookups became part of a group, 0 if nothing was changed. Errors are those of reading the
// graph; it is unchanged then. The graph's bits stay: outputs and the codes of errors are the same.
absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_GROUPED_LOOKUPS_H_
