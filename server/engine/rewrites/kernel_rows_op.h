// The op ColcastKernelRows: rows of a variable, gathered on first use. It exists only in the
// server; a SavedModel never contains it.
//
// Inputs: `kernel`, of rank 1 or more; `rows`, a vector of positions that are the same in every
// run. Attribute: `axis`, 0 or 1. Output: GatherV2's.
//
// Rows are gathered again when the kernel is another tensor. The op keeps a reference to the kernel
// that it read, so TensorFlow cannot change the values in place.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_

#include "tensorflow/core/framework/types.h"

namespace colcast::engine {

// The kernel's dtypes that the op supports.
tensorflow::DataTypeSet KernelRowsTypes();

// The op's name. Calling this function links the op's registration in.
const char* KernelRowsOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_KERNEL_ROWS_OP_H_
