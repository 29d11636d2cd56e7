// The op ColcastBfloat16Product: a MatMul, and what follows it, with weights that are rounded and
// packed. It exists in the server only; a SavedModel never holds it.
//
// Inputs: `x` [rows, depth]; `weights`, a matrix of which `depth` rows are used, from `first_row`
// on; `added`, each [width] or [1, width]; all float32. Attributes: `first_row`, `depth`, `relu`.
// Output: activation(x * weights + the sum of `added`); `makes_nan_zero`, where that is a Relu.
//
// Weights are packed by the first run, and again after an update of the variable: the op holds on
// to the tensor that it packed, so that TensorFlow cannot change its values in place and an update
// comes as another tensor. Errors are those of MatMul and BiasAdd.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_

namespace colcast::engine {

// Calling it links the op's registration in.
const char* Bfloat16ProductOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
