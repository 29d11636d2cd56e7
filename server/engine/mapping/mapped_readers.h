// How the graphs of a model read the variables whose values are mapped.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_
#define COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_

#include <map>
#include <set>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct MappedReaders {
  std::set<std::string> gathered;  // variables, of which rows are gathered
  std::map<std::string, std::string>
      others;  // variables that a node does anything else with, and it
};

// Puts ColcastGather where a graph, its functions included, gathers rows of one of `variables`:
// names, which are their VarHandleOps' `shared_name`. The values of `others` must be in memory.
MappedReaders GatherMapped(const std::set<std::string>& variables,
                           const tensorflow::SignatureDef& declared, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAPPED_READERS_H_
