// Gathers rows of a variable at constant positions once instead of in each run.
//
// Late expansion splits a product by the rows of its kernel. Where user and item rows interleave,
// the exported graph gathers them from the variable in each run, because an export copies no
// weights into a graph.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {

// The op ColcastKernelRows: rows of a variable, gathered on first use. It exists only in the
// server; a SavedModel never contains it.
//
// Inputs: `kernel`, of rank 1 or more; `rows`, a vector of positions that are the same in every
// run. Attribute: `axis`, 0 or 1. Output: GatherV2's.
//
// The op gathers again if `kernel` is a different tensor. It keeps a reference to the kernel that
// it read, so TensorFlow cannot change the values in place.

// The dtypes that the op supports.
tensorflow::DataTypeSet KernelRowsTypes();

// The op's name. Calling this function links the op's registration in.
const char* KernelRowsOpName();

absl::StatusOr<int> GatherKernelRowsOnce(const std::set<std::string>& feeds,
                                         tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_H_
