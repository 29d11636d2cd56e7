// Reads one feature's chain of ops, backwards from the Concat's input to the feature's column. Also
// recognizes two subgraphs for lists: a padded list, and the mean of a list's table rows.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
#define COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/shaped_graph.h"

namespace colcast::engine {

struct FeatureChain {
  LookupChain chain;
  Output column;
  tensorflow::PartialTensorShape shape;  // the shape that the column must fit
  Output table;                          // null node if the column is copied
  // How often a Tile repeats the column's single row; null node without a Tile.
  Output rows;
  std::string lookup;                          // name of the gather node
  std::vector<const tensorflow::Node*> nodes;  // all nodes that the chain replaces
};

// Reads the chain that computes `part`, an input of a Concat of matrices. If no chain is found, the
// column is `part` itself. Returns nullopt unless `part` is a matrix of plain values.
std::optional<FeatureChain> ReadFeatureChain(const ShapedGraph& graph, Output part);

// Whether the tensor is a sum over the second of three axes, which drops that axis.
bool SumsLists(const ShapedGraph& graph, Output sum);

// The mean of a list's table rows, ignoring the rows of hidden ids.
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

// Matches a list whose row i has the first lengths[i] values of the column's row i, then padding,
// and whose width is the largest length. Returns nullopt otherwise, or if a node in between is fed.
std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph, Output tensor);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
