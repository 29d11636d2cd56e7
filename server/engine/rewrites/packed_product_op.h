// The op ColcastBfloat16Product: a MatMul and the ops after it, with weights that are rounded and
// packed. It exists only in the server; a SavedModel never contains it.
//
// Inputs: `x` [rows, depth]; `weights`, a matrix of which `depth` rows are used, from `first_row`
// on; `added`, each [width] or [1, width]; all float32. Attributes: `first_row`, `depth`, `relu`,
// and `makes_nan_zero` for the Relu. Output: activation(x * weights + the sum of `added`).
//
// The first run packs the weights, and so does the first one after an update of the variable: the
// op keeps a reference to the tensor that it packed, so TensorFlow cannot change the values in
// place, and an update brings another tensor. Errors are those of MatMul and BiasAdd.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_

namespace colcast::engine {

// The op's name. Calling this function links the op's registration in.
const char* Bfloat16ProductOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
