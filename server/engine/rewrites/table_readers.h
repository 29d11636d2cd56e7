// Which variables the graphs of a model's signatures read, and how.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// Variables by name, which is a VarHandleOp's `shared_name`.
struct TablesRead {
  std::set<std::string> float32;  // as they are
  std::set<std::string> int8;     // by grouped lookups, in int8
};

// What a signature's outputs depend on.
TablesRead ReadBy(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& declared);

// The variables that one node of the graph holds, and no function's: who reads them can be told.
std::set<std::string> VariablesOf(const tensorflow::GraphDef& graph);

// Float32 matrices of a MiB or more of which the signatures do nothing but look rows up: what may
// be kept in int8 alone. What calls a function with a variable may do anything with it.
std::set<std::string> TablesOnlyLookedUp(const tensorflow::GraphDef& graph,
                                         const std::vector<tensorflow::SignatureDef>& signatures);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
