// The ops ColcastBfloat16Product and ColcastInt8Product: a MatMul, and what follows it, with
// weights that are rounded and packed. They exist in the server only; a SavedModel never holds
// them.
//
// Inputs: `x` [rows, depth]; `weights`, a matrix of which `depth` rows are used, from `first_row`
// on; `added`, each [width] or [1, width]; all float32. Attributes: `first_row`, `depth`, `relu`.
// Output: activation(x * weights + the sum of `added`); `makes_nan_zero`, where that is a Relu.
//
// Weights are rounded and packed when they are first seen, and again whenever they are others: the
// op holds on to the tensor that it packed, so that TensorFlow cannot change its values in place,
// and an update of a variable comes as another tensor. Errors are those of MatMul and BiasAdd.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_

namespace colcast::engine {

// The ops' names. Whoever asks for one has the ops linked in and registered.
const char* Bfloat16ProductOpName();
const char* Int8ProductOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
