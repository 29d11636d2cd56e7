#include <limits>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/engine/mapping/gather_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

// A graph, or the body of a function.
struct Scope {
  Scope(Nodes* nodes, bool is_function) : all(nodes), is_function(is_function), view(*nodes) {}

  // The inputs that read a node or argument; their nodes may be changed.
  std::vector<std::pair<NodeDef*, int>> ReadersOf(const std::string& name) const {
    std::vector<std::pair<NodeDef*, int>> readers;
    for (const auto& [node, input] : view.ReadersOf(name)) {
      readers.emplace_back(const_cast<NodeDef*>(node), input);
    }
    return readers;
  }

  Nodes* const all;
  const bool is_function;
  const GraphView view;
  std::set<std::string> results;  // nodes or arguments whose values leave the scope
};

// The variable that a node or argument holds.
struct Held {
  std::string variable;
  bool is_value = false;  // otherwise it holds the handle
};

bool HasZero(const NodeDef& node, const char* attribute) {
  int64_t value = 0;
  TryGetNodeAttr(node, attribute, &value);
  return value == 0;
}

bool IsZero(const Scope& scope, const std::string& input) {
  const NodeDef* const node = scope.view.Find(input);
  return node != nullptr && IntegerOf(*node) == 0;
}

bool GathersRows(const Scope& scope, const NodeDef& node, bool is_value) {
  if (!HasZero(node, "batch_dims")) return false;
  if (!is_value) return node.op() == "ResourceGather";
  return node.op() == "Gather" || (node.op() == "GatherV2" && IsZero(scope, node.input(2)));
}

// Whether the node sums rows of its first input; its second input holds their positions.
bool SumsBySegment(const NodeDef& node) {
  static constexpr std::string_view kSums[] = {"SparseSegmentSum", "SparseSegmentMean",
                                               "SparseSegmentSqrtN"};
  return absl::c_linear_search(kSums, absl::StripSuffix(node.op(), "WithNumSegments"));
}

// Whether an input reads this output of the node; inside functions the output is called `name`.
bool IsOutput(const std::string& input, const NodeDef& node, int index, const char* name) {
  return input == absl::StrCat(node.name(), ":", index) ||
         input == absl::StrCat(node.name(), ":", name, ":0") ||
         (index == 0 && input == node.name());
}

bool IsGroupedTable(const NodeDef& node, int input) {
  std::vector<tensorflow::DataType> columns, tables;
  if (node.op() != GroupedLookupOpName() || !GetNodeAttr(node, "columns_types", &columns).ok() ||
      !GetNodeAttr(node, "tables_types", &tables).ok()) {
    return false;
  }
  const int position = input - static_cast<int>(columns.size());
  return position >= 0 && position < static_cast<int>(tables.size());
}

bool ReadsTheShape(const NodeDef& node, bool is_value) {
  return is_value ? node.op() == "Shape" || node.op() == "Size" || node.op() == "Rank"
                  : node.op() == "VariableShape" || node.op() == "VarIsInitializedOp";
}

class TableWalk {
 public:
  explicit TableWalk(tensorflow::GraphDef* graph) {
    for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  void Follow(const Scope& scope, const std::string& holder, const Held& held) {
    if (scope.results.count(holder) > 0) Note(held, "it is an output");
    for (const auto& [reader, input] : scope.ReadersOf(holder)) Read(scope, held, reader, input);
  }

  std::map<std::string, std::string> others;

 private:
  void Read(const Scope& scope, const Held& held, NodeDef* reader, int input) {
    const std::string& op = reader->op();
    if (op == "Identity" || (op == "Switch" && input == 0)) {
      Follow(scope, reader->name(), held);
    } else if (op == "ReadVariableOp" && !held.is_value) {
      Follow(scope, reader->name(), {held.variable, true});
    } else if (input == 0 && GathersRows(scope, *reader, held.is_value)) {
      const std::vector<NodeDef*> sums = SumsOfDistinct(scope, reader);
      MakeMappedGather(reader);
      SumGathered(scope, reader, sums);
    } else if (input == 0 && held.is_value && SumsBySegment(*reader)) {
      SumGathered(scope, AddGather(scope, *reader), {reader});
    } else if (const Calls calls = CallsOf(*reader); input >= calls.first_argument) {
      for (const std::string& called : calls.functions) {
        Enter(called, input - calls.first_argument, held);
      }
    } else if (!IsGroupedTable(*reader, input) && !(input == 0 && IsMappedGather(*reader)) &&
               !ReadsTheShape(*reader, held.is_value)) {
      Note(held, absl::StrCat(op, " ", reader->name()));
    }
  }

  // Embedding lookups gather a row for each distinct id, then sum the rows by segment. TensorFlow's
  // optimizer removes the search for distinct ids, but does not recognize our gather. If only such
  // sums read the gather, makes it gather the rows of all ids, and returns the sums.
  static std::vector<NodeDef*> SumsOfDistinct(const Scope& scope, NodeDef* gather) {
    const NodeDef* const unique = scope.view.Find(gather->input(1));
    std::vector<NodeDef*> sums;
    if (unique == nullptr || unique->op() != "Unique" ||
        !IsOutput(gather->input(1), *unique, 0, "y") ||
        !FindSums(scope, gather->name(), *unique, &sums)) {
      return {};
    }
    gather->set_input(1, unique->input(0));
    return sums;
  }

  // Returns false if anything but sums at the positions from `unique` reads `rows`.
  static bool FindSums(const Scope& scope, const std::string& rows, const NodeDef& unique,
                       std::vector<NodeDef*>* sums) {
    const auto readers = scope.ReadersOf(rows);
    if (scope.results.count(rows) > 0 || readers.empty()) return false;
    return absl::c_all_of(readers, [&](const auto& one) {
      const auto& [reader, input] = one;
      if (reader->op() == "Identity") return FindSums(scope, reader->name(), unique, sums);
      sums->push_back(reader);
      return input == 0 && SumsBySegment(*reader) && IsOutput(reader->input(1), unique, 1, "idx");
    });
  }

  static void SumGathered(const Scope& scope, NodeDef* gather, const std::vector<NodeDef*>& sums) {
    // Reads the ids before they are cast, as TensorFlow's optimizer does for these sums, so that an
    // id beyond int32 is refused, not truncated.
    const NodeDef* const cast = scope.view.Find(gather->input(1));
    tensorflow::DataType type = tensorflow::DT_INVALID;
    if (!sums.empty() && cast != nullptr && cast->op() == "Cast" &&
        TryGetNodeAttr(*cast, "SrcT", &type) &&
        (type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64)) {
      gather->set_input(1, cast->input(0));
      (*gather->mutable_attr())["Tindices"].set_type(type);
    }
    for (NodeDef* const sum : sums) engine::SumGathered(scope.is_function, gather, sum);
  }

  // Adds a gather of the table's rows that `sum` reads.
  static NodeDef* AddGather(const Scope& scope, const NodeDef& sum) {
    NodeDef* const gather = scope.all->Add();
    gather->set_name(absl::StrCat(sum.name(), "/rows"));
    while (scope.view.Find(gather->name()) != nullptr) gather->mutable_name()->append("_");
    gather->set_op("Gather");
    gather->set_device(sum.device());
    gather->add_input(sum.input(0));
    gather->add_input(sum.input(1));
    for (const std::string& input : sum.input()) {
      if (absl::StartsWith(input, "^")) gather->add_input(input);
    }
    tensorflow::DataType type = tensorflow::DT_FLOAT, indices = tensorflow::DT_INT32;
    TryGetNodeAttr(sum, "T", &type);
    TryGetNodeAttr(sum, "Tidx", &indices);
    tensorflow::AddNodeAttr("Tparams", type, gather);
    tensorflow::AddNodeAttr("Tindices", indices, gather);
    MakeMappedGather(gather);
    return gather;
  }

  // The functions that a node calls; their arguments are its inputs from `first_argument` on.
  struct Calls {
    std::vector<std::string> functions;
    int first_argument = 0;
  };

  Calls CallsOf(const NodeDef& node) const {
    Calls calls;
    const std::string_view op = absl::StripPrefix(node.op(), "Stateless");
    const bool may_branch = op == "If" || op == "Case";
    if (may_branch) calls.first_argument = 1;
    for (const auto& [name, value] : node.attr()) {
      const bool is_called = (name == "f" && absl::EndsWith(op, "PartitionedCall")) ||
                             (may_branch && absl::EndsWith(name, "_branch"));
      if (is_called) calls.functions.push_back(value.func().name());
      if (may_branch && name == "branches") {
        for (const auto& branch : value.list().func()) calls.functions.push_back(branch.name());
      }
    }
    if (functions_.count(node.op()) > 0) calls.functions.push_back(node.op());
    const auto is_unknown = [this](const auto& name) { return functions_.count(name) == 0; };
    return absl::c_any_of(calls.functions, is_unknown) || calls.functions.empty()
               ? Calls{{}, std::numeric_limits<int>::max()}
               : calls;
  }

  void Enter(const std::string& name, int argument, const Held& held) {
    if (!entered_.insert({name, argument, held.variable, held.is_value}).second) return;
    FunctionDef* const function = functions_.at(name);
    if (argument >= function->signature().input_arg_size()) return Note(held, name);
    // Functions with lists of tensors as arguments are not traced.
    for (const auto& arg : function->signature().input_arg()) {
      if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) return Note(held, name);
    }
    Scope body(function->mutable_node_def(), /*is_function=*/true);
    for (const auto& [output, tensor] : function->ret()) body.results.insert(NodeOf(tensor));
    Follow(body, function->signature().input_arg(argument).name(), held);
  }

  void Note(const Held& held, const std::string& reader) { others.emplace(held.variable, reader); }

  std::map<std::string, FunctionDef*> functions_;
  std::set<std::tuple<std::string, int, std::string, bool>> entered_;
};

}  // namespace

std::map<std::string, std::string> GatherMapped(const std::set<std::string>& variables,
                                                const tensorflow::SignatureDef& declared,
                                                tensorflow::GraphDef* graph) {
  if (variables.empty()) return {};
  Scope main(graph->mutable_node(), /*is_function=*/false);
  for (const std::string& tensor : TensorsOf(declared)) main.results.insert(NodeOf(tensor));
  TableWalk walk(graph);
  std::map<std::string, std::string> held;  // the variable of each handle
  for (const NodeDef& node : graph->node()) {
    std::string name;
    if (node.op() != "VarHandleOp" || !TryGetNodeAttr(node, "shared_name", &name)) continue;
    if (variables.count(name) > 0) held[node.name()] = name;
  }
  for (const auto& [handle, variable] : held) walk.Follow(main, handle, {variable, false});
  return std::move(walk.others);
}

}  // namespace colcast::engine
