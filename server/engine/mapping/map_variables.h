// Which variables of a model stay mapped.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Used while a model is loaded: made, Find(), Read() for every graph that may run, CopyOthers().
class MappedVariables {
 public:
  MappedVariables() = default;  // none

  // Those of a model that have `least_bytes` or more. `initializing`: the graph of the op that runs
  // once they are restored, which may read none of them.
  MappedVariables(const tensorflow::GraphDef& model, const tensorflow::GraphDef& initializing,
                  int64_t least_bytes);

  // Whether a session should restore by MapRestored() (restore_op.h).
  bool any() const { return !variables_.empty(); }

  // Finds the mapped tables of a session. False if one of them belongs to no known variable: the
  // session must not be used then.
  bool Find(tensorflow::Session* session);

  // Makes the lookups of a signature's graph read mapped tables.
  void Read(const std::string& signature, const tensorflow::SignatureDef& declared,
            tensorflow::GraphDef* graph);

  // Copies what a graph reads otherwise into memory. DATA_LOSS for bytes that are not those saved.
  absl::Status CopyOthers(tensorflow::Session* session);

  // What an operator should know, a sentence each.
  std::vector<std::string> notes() const;

 private:
  struct Variable {
    std::string container;  // "": the default one
    std::string name;
    std::string why;  // it must be in memory; "": it may stay mapped
    bool is_mapped = false;
    bool is_gathered = false;
    int64_t bytes = 0;
  };

  std::vector<Variable> variables_;
  std::set<std::string> mapped_;  // of those without a reason
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_
