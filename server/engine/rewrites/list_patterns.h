// Recognizes graphs of lists: a padded list, and the mean of a list's table rows.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LIST_PATTERNS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LIST_PATTERNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/rewrites/shaped_graph.h"

namespace colcast::engine {

// The mean of a list's table rows, leaving out the rows of hidden ids.
struct MaskedMean {
  Output rows;  // float [rows, values, width]
  Output ids;   // [rows, values]
  // Rows of this id are multiplied by 0, all others by 1.
  int64_t hidden;
  std::vector<const tensorflow::Node*> nodes;  // all nodes from `rows` and `ids` to the mean
};

// Matches sum(rows * mask, 1) / maximum(sum(mask, 1), 1), where mask is cast(ids != hidden,
// float)[:, :, None]. Returns nullopt for any other tensor, or if a node in between is fed.
std::optional<MaskedMean> ReadMaskedMean(const ShapedGraph& graph, Output tensor);

// A padded list, made from a column and its lengths by the ops that colcast export writes, and by
// TensorFlow's SparseTensor.to_dense.
struct PaddedList {
  Output column;                               // a matrix
  Output lengths;                              // int64 [rows]
  Output padding;                              // a constant scalar
  std::string gather;                          // name of the GatherNd node
  std::vector<const tensorflow::Node*> nodes;  // all nodes from `column` and `lengths` to the list
};

// Matches a list whose row i has the first lengths[i] values of the column, then padding; its width
// is the largest length. Returns nullopt for any other tensor, or if a node in between is fed.
std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LIST_PATTERNS_H_
