// Reads a feature's chain of ops, from what enters the Concat back to its column.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
#define COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/shaped_graph.h"

namespace colcast::engine {

struct FeatureChain {
  LookupChain chain;
  Output column;
  tensorflow::PartialTensorShape shape;        // what the column's must fit
  Output table;                                // its node is null where the column is copied
  Output rows;                                 // how often a Tile repeats its one row, or null
  std::string lookup;                          // the node that gathers
  std::vector<const tensorflow::Node*> nodes;  // that the chain stands for
};

// What computes `part`, an input of a Concat of matrices. Looks no further back than the nodes
// called `feeds`. Nothing if its number of columns is not known, or is none of a chain's.
std::optional<FeatureChain> ReadFeatureChain(const ShapedGraph& graph,
                                             const std::set<std::string>& feeds, Output part);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_FEATURE_CHAIN_H_
