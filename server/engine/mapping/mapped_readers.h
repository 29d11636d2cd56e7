// Finds how a model's graphs read variables whose values are mapped.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_
#define COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_

#include <map>
#include <set>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// Replaces every op that gathers rows of `variables`, in the graph or its functions, with a
// ColcastGather. `variables` are named by the `shared_name` of their VarHandleOps. Returns those
// that are used in any other way, each with a node that does so; their values must be in memory.
std::map<std::string, std::string> GatherMapped(const std::set<std::string>& variables,
                                                const tensorflow::SignatureDef& declared,
                                                tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_
