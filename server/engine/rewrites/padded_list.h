// Recognizes the ops that make a padded list from a column and its lengths, as written by colcast
// export and by TensorFlow's SparseTensor.to_dense.
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
  std::string gather;                          // name of the GatherNd node
  std::vector<const tensorflow::Node*> nodes;  // all nodes from `column` and `lengths` to the list
};

// Matches a list whose row i has the first lengths[i] values of the column, then padding; its width
// is the largest length. Nothing for any other tensor, or if a node in between is in `feeds`.
std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PADDED_LIST_H_
