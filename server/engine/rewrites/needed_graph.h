// Finds nodes in a graph and the variables that it reads, and extracts the part of a model's graph
// that a signature needs.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_NEEDED_GRAPH_H_
#define COLCAST_SERVER_ENGINE_REWRITES_NEEDED_GRAPH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// The node's name: "node" for "^node", "node:1" and "node".
inline std::string NodeOf(std::string_view name) {
  absl::ConsumePrefix(&name, "^");
  return std::string(name.substr(0, name.find(':')));
}

// The names of a signature's tensors, or of its outputs alone, including the components of sparse
// and composite tensors.
std::vector<std::string> TensorsOf(const tensorflow::SignatureDef& declared);
std::vector<std::string> OutputsOf(const tensorflow::SignatureDef& declared);

// The elements of an int32 or int64 tensor, and the value of a constant with one such element.
std::optional<std::vector<int64_t>> IntegersOf(const tensorflow::Tensor& tensor);
std::optional<int64_t> IntegerOf(const tensorflow::NodeDef& constant);

// Whether each output of the signature is a dense tensor.
bool HasDenseOutputs(const tensorflow::SignatureDef& declared);

// Replaces each control input "^a" by "^b" where `moved` maps "^a" to "^b".
void MoveWaits(const std::map<std::string, std::string>& moved, tensorflow::NodeDef* node);

// The nodes of a graph, or of a function's body, by name, and the readers of each node. Used by one
// thread at a time.
class GraphView {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;
  // Whether a node's input is followed.
  using Follows = std::function<bool(const tensorflow::NodeDef& node, int input)>;
  struct Reader {
    const tensorflow::NodeDef* node;
    int input;
  };

  // `nodes` must outlive this object.
  explicit GraphView(const Nodes& nodes);
  explicit GraphView(const tensorflow::GraphDef& graph) : GraphView(graph.node()) {}

  // The node of a tensor or control input; null if the graph has none.
  const tensorflow::NodeDef* Find(std::string_view tensor) const;

  // The nodes of these tensors, and all nodes on which they depend.
  std::set<const tensorflow::NodeDef*> Ancestors(std::vector<std::string> tensors,
                                                 const Follows& follows = nullptr) const;

  // The inputs that read a node or a function's argument, without control inputs.
  const std::vector<Reader>& ReadersOf(const std::string& name) const;

  // These nodes, and all nodes that depend on them.
  std::set<const tensorflow::NodeDef*> Descendants(
      std::vector<const tensorflow::NodeDef*> nodes) const;

 private:
  const Nodes& all_;
  std::map<std::string, const tensorflow::NodeDef*, std::less<>> nodes_;
  mutable std::map<std::string, std::vector<Reader>> readers_;  // found on first use
};

class NeededGraphs {
 public:
  // `whole` must outlive this object.
  explicit NeededGraphs(const tensorflow::GraphDef& whole);

  // These nodes or tensors' nodes, all nodes on which they depend, and the functions that they
  // call. Returns NOT_FOUND if one is missing.
  absl::StatusOr<tensorflow::GraphDef> Of(std::vector<std::string> names) const;

 private:
  const tensorflow::GraphDef& whole_;
  const tensorflow::FunctionLibraryDefinition functions_;
  const GraphView view_;
};

// Variables by name, the `shared_name` of their VarHandleOp.
struct TablesRead {
  std::set<std::string> float32;  // read as they are
  std::set<std::string> int8;     // read in int8 by grouped lookups
};

// The variables on which a signature's outputs depend.
TablesRead ReadBy(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& declared);

// The variables that have exactly one VarHandleOp in the graph, in the default container, and none
// in a function. All readers of these can be found.
std::set<std::string> VariablesOf(const tensorflow::GraphDef& graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_NEEDED_GRAPH_H_
