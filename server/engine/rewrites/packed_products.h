// Rewrites: the product of a matrix and a variable, some of its rows, or a constant: a MatMul of
// float32 behind which rows may be added and a Relu follow, becomes one ColcastBfloat16Product or
// ColcastInt8Product (packed_product_op.h). Scores stay close; bits do not.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// As Rewrite::apply has it: they return how many products they changed, none where the other one
// has changed some.
absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds,
                                        tensorflow::GraphDef* graph);
absl::StatusOr<int> UseInt8Products(const std::set<std::string>& feeds,
                                    tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCTS_H_
