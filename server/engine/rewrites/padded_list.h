// Recognizes the ops that make a padded list of a column and its lengths, as colcast export and
// TensorFlow's SparseTensor.to_dense write them.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PADDED_LIST_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PADDED_LIST_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/rewrites/shaped_graph.h"

namespace colcast::engine {

struct PaddedList {
  Output column;                               // a matrix
  Output lengths;                              // int64 [rows]
  Output padding;                              // a constant scalar
  std::string gather;                          // the GatherNd
  std::vector<const tensorflow::Node*> nodes;  // from `column` and `lengths` to the list
};

// The list that `tensor` is: of row i the first lengths[i] values of the column, then the padding;
// as wide as the largest length. Nothing for any other tensor, and if a node between is in `feeds`.
std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PADDED_LIST_H_
