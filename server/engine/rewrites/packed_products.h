// A rewrite: a float32 MatMul with a variable, some of its rows, or a constant, becomes one
// ColcastBfloat16Product (packed_product_op.h), together with the rows added to it and the Relu.
// Scores stay close but not bit-identical.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// See Rewrite::apply. Returns the number of products replaced.
absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds,
                                        tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
