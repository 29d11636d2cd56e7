#include "server/engine/rewrites/id_ranges.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/rewrites/node_name.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;

// The input 0 of such an op is what rows are taken from, and 1 has their numbers.
bool IsGather(const NodeDef& node) {
  const std::string& op = node.op();
  return op == "ResourceGather" || op == "GatherV2" || op == "Gather" ||
         absl::StartsWith(op, "SparseSegment");
}

class Reader {
 public:
  explicit Reader(const GraphDef& graph) {
    for (const NodeDef& node : graph.node()) by_name_[node.name()] = &node;
  }

  // Of a variable or constant, or what passes it on; -1 if it is neither, or of unknown size.
  int64_t RowsOf(const std::string& tensor) const {
    const auto found = by_name_.find(NodeOf(tensor));
    if (found == by_name_.end()) return -1;
    const NodeDef& node = *found->second;
    if ((node.op() == "Identity" || node.op() == "ReadVariableOp") && node.input_size() > 0) {
      return RowsOf(node.input(0));
    }
    PartialTensorShape shape;
    if (const auto value = node.attr().find("value"); value != node.attr().end()) {
      shape = PartialTensorShape(value->second.tensor().tensor_shape());
    } else if (!GetNodeAttr(node, "shape", &shape).ok() || node.op() == "Placeholder") {
      return -1;
    }
    return shape.dims() > 0 ? shape.dim_size(0) : -1;
  }

  // The nodes whose values go into a tensor.
  std::set<std::string> Sources(const std::string& tensor) const {
    std::set<std::string> seen;
    std::vector<std::string> open = {NodeOf(tensor)};
    while (!open.empty()) {
      const auto found = by_name_.find(open.back());
      open.pop_back();
      if (found == by_name_.end() || !seen.insert(found->first).second) continue;
      const NodeDef& node = *found->second;
      for (int i = 0; i < node.input_size(); ++i) {
        if (IsGather(node) && i > 0) break;  // which rows, not what is in them
        if (!absl::StartsWith(node.input(i), "^")) open.push_back(NodeOf(node.input(i)));
      }
    }
    return seen;
  }

 private:
  std::map<std::string, const NodeDef*> by_name_;
};

void Widen(int64_t rows, IdRange* range) {
  range->least = range->most == 0 ? rows : std::min(range->least, rows);
  range->most = std::max(range->most, rows);
}

}  // namespace

IdRanges ReadIdRanges(const GraphDef& graph, const tensorflow::SignatureDef& declared) {
  const Reader reader(graph);
  std::map<std::string, std::string> aliases;  // by node
  for (const auto& [alias, info] : declared.inputs()) aliases[NodeOf(info.name())] = alias;
  IdRanges ranges;
  for (const NodeDef& node : graph.node()) {
    if (!IsGather(node) || node.input_size() < 2) continue;
    const int64_t rows = reader.RowsOf(node.input(0));
    if (rows <= 0) continue;
    for (const std::string& source : reader.Sources(node.input(1))) {
      const auto input = aliases.find(source);
      if (input != aliases.end()) Widen(rows, &ranges[input->second]);
    }
  }
  return ranges;
}

}  // namespace colcast::engine
