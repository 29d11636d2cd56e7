// A rewrite after which grouped lookups read tables in rounded form. Scores stay close but not
// bit-identical.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_LOOKUPS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_LOOKUPS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// See Rewrite::apply. Changes the ColcastGroupedLookups that look up or sum rows of the named
// variables, even if they read them in another `row_type` (rounded_rows.h); control edges from
// reads of such a variable move to the lookup. Returns the number of tables now read in `row_type`.
absl::StatusOr<int> UseRoundedTables(tensorflow::DataType row_type,
                                     const std::set<std::string>& variables,
                                     const std::set<std::string>& feeds,
                                     tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_LOOKUPS_H_
