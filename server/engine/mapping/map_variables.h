// Determines which variables of a model stay mapped.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/mapping/table_deltas.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Used while a model is loaded: construct it, then call Find(), Read() for every graph that may
// run, and CopyOthers().
class MappedVariables {
 public:
  MappedVariables() = default;

  // The mapped variables of a model; variables smaller than `least_bytes` are not mapped.
  // `initializing` is the graph of the op that runs after the restore: if it reads any of them
  // except to initialize another variable, none is mapped.
  MappedVariables(const tensorflow::GraphDef& model, const tensorflow::GraphDef& initializing,
                  int64_t least_bytes);

  // Keeps all variables in memory; notes() gives `why` as the reason.
  void KeepInMemory(const std::string& why);

  // Whether the session should restore with MapRestored() (mapped_tables.h).
  bool any() const;

  // Finds the variables of a session. Returns false if a mapped table belongs to no known
  // variable; the session must then not be used.
  bool Find(tensorflow::Session* session);

  // Makes the lookups in a signature's graph read mapped tables.
  void Read(const std::string& signature, const tensorflow::SignatureDef& declared,
            tensorflow::GraphDef* graph);

  // Copies into memory the tables that graphs read other than by lookups. Returns DATA_LOSS if a
  // table's bytes differ from the saved ones.
  absl::Status CopyOthers(tensorflow::Session* session);

  // Drops the tables of freed variables, which signatures read only in int8.
  void DropFreed(tensorflow::Session* session);

  // The variables' tables, to which deltas may apply.
  std::vector<ServedTable> Tables() const;

  // The addresses of the mapped tables that a graph reads.
  std::vector<const void*> TablesOf(const tensorflow::GraphDef& graph) const;

  // Notes for the operator, one sentence each: what is mapped, and why other large tables are not.
  std::vector<std::string> notes() const;

 private:
  struct Variable {
    std::string container;  // "" for the default one
    std::string name;
    int64_t bytes = 0;  // 0 if not known until the variable is restored, or if nothing restores it
    std::string why;    // why it must be in memory; "" if it may stay mapped
    std::shared_ptr<const MappedTable> mapped;  // null if it is not mapped, or no longer mapped
    bool is_freed = false;
  };

  bool IsLarge(const Variable& one) const { return one.bytes > 0 && one.bytes >= least_bytes_; }

  int64_t least_bytes_ = 0;
  std::vector<Variable> variables_;
  std::set<std::string> mapped_;  // variables that may stay mapped
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAP_VARIABLES_H_
