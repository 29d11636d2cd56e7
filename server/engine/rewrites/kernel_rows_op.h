// The op ColcastKernelRows: rows of a variable, gathered when they are first needed. It exists in
// the server only; a SavedModel never holds it.
//
// Inputs: `kernel`, of rank 1 or more; `rows`, a vector of positions that are the same in every
// run. Attribute: `axis`, 0 or 1. Output: what GatherV2 gives.
//
// Rows are gathered again whenever the kernel is another tensor. The op holds on to the one that it
// read, so that TensorFlow cannot change its values in place.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_

#include "tensorflow/core/framework/types.h"

namespace colcast::engine {

// Of the kernels that it takes.
tensorflow::DataTypeSet KernelRowsTypes();

// The op's name. Whoever asks for it has the op linked in and registered.
const char* KernelRowsOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_
