// Finds which variables the graphs of a model's signatures read, and how.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_

#include <set>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// Variables by name, the `shared_name` of their VarHandleOp.
struct TablesRead {
  std::set<std::string> float32;  // read as they are
  std::set<std::string> int8;     // read in int8 by grouped lookups
};

// The variables on which a signature's outputs depend.
TablesRead ReadBy(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& declared);

// The variables that have exactly one VarHandleOp in the graph, in the default container, and none
// in a function, so that their readers can be found.
std::set<std::string> VariablesOf(const tensorflow::GraphDef& graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_TABLE_READERS_H_
