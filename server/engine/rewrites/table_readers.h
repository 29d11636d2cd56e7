// Finds which variables the graphs of a model's signatures read, and how.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// For each variable, the type to which its rows are rounded (rounded_rows.h).
using RowTypes = std::map<std::string, tensorflow::DataType>;

// Variables by name, the `shared_name` of their VarHandleOp.
struct TablesRead {
  std::set<std::string> float32;  // read as they are
  RowTypes rounded;               // read in rounded form by grouped lookups
};

// The variables on which a signature's outputs depend.
TablesRead ReadBy(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& declared);

// The variables that have exactly one VarHandleOp in the graph and none in a function, so that
// their readers can be found.
std::set<std::string> VariablesOf(const tensorflow::GraphDef& graph);

// Float32 matrices of at least a MiB in which the signatures only look up rows, so that their
// rounded forms suffice. A variable passed to a function does not count, because the function may
// do anything with it.
std::set<std::string> TablesOnlyLookedUp(const tensorflow::GraphDef& graph,
                                         const std::vector<tensorflow::SignatureDef>& signatures);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
