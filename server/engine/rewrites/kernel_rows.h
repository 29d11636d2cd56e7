// A rewrite: gathers rows of a variable at constant positions once instead of in each run.
//
// Late expansion splits a product by the rows of its kernel. Where user and item rows interleave,
// the exported graph gathers them from the variable in each run, because no weights may be copied
// into a graph.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

absl::StatusOr<int> GatherKernelRowsOnce(const std::set<std::string>& feeds,
                                         tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_
