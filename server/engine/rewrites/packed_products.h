// The rewrite: a MatMul of float32 with a variable, some of its rows, or a constant, and the rows
// added and the Relu behind it, become one ColcastBfloat16Product (packed_product_op.h). Scores
// stay close; bits do not.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// As Rewrite::apply: returns how many products were replaced.
absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds,
                                        tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
