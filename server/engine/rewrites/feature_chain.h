// Reads the chain of ops of one feature, backwards from the Concat's input to the feature's column.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
#define COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_

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

// Reads the chain that computes `part`, an input of a Concat of matrices. If there is none, `part`
// itself is the column. Returns nullopt unless `part` is a matrix of plain values.
std::optional<FeatureChain> ReadFeatureChain(const ShapedGraph& graph, Output part);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
