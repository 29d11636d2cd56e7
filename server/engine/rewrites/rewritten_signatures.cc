#include "server/engine/rewrites/rewritten_signatures.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/engine/rewrites/node_name.h"
#include "server/engine/rewrites/packed_product_op.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;

// A copy of half a loop would run in the frame of the other half.
constexpr std::string_view kLoops[] = {"Enter", "Exit", "Switch", "Merge", "NextIteration"};

// Ops with a state that they only read.
constexpr std::string_view kReaders[] = {"Assert",          "HashTable",         "HashTableV2",
                                         "LookupTableFind", "LookupTableFindV2", "Placeholder",
                                         "ReadVariableOp",  "ResourceGather",    "ResourceGatherNd",
                                         "VarHandleOp",     "Variable",          "VariableV2"};

// Graphs are tried on made-up values before they serve: those that may change something are not.
bool MayChangeSomething(const NodeDef& node) {
  const tensorflow::OpDef* op = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) return true;
  const bool is_reader =
      std::find(std::begin(kReaders), std::end(kReaders), node.op()) != std::end(kReaders);
  return op->is_stateful() && !is_reader;
}

std::set<std::string> InputNodes(const SignatureDef& declared) {
  std::set<std::string> nodes;
  for (const auto& [alias, info] : declared.inputs()) nodes.insert(NodeOf(info.name()));
  return nodes;
}

bool HasDenseOutputs(const SignatureDef& declared) {
  for (const auto& [alias, info] : declared.outputs()) {
    if (info.encoding_case() != tensorflow::TensorInfo::kName) return false;
  }
  return !declared.outputs().empty();
}

class Rewriter {
 public:
  explicit Rewriter(const GraphDef& graph) : graph_(graph) {
    for (const NodeDef& node : graph.node()) by_name_[node.name()] = &node;
  }

  // The forms of a signature, whose nodes are appended to `added`.
  SignatureForms Rewrite(const std::string& name, const SignatureDef& declared,
                         const std::vector<engine::Rewrite>& rewrites, const std::string& only,
                         GraphDef* added) const {
    const std::set<std::string> inputs = InputNodes(declared);
    GraphDef needed;
    if (!HasDenseOutputs(declared) || !TakeNeeded(inputs, declared, &needed)) return {};
    SignatureForms made;
    unsigned exact = 0, found = 0;  // sets of exact rewrites: all, and those that find something
    unsigned always = 0;
    for (size_t i = 0; i < rewrites.size(); ++i) {
      exact |= unsigned{rewrites[i].exact} << i;
      always |= unsigned{rewrites[i].always} << i;
    }
    for (unsigned set = 1; set < 1u << rewrites.size(); ++set) {
      if (only.empty() && (found & always & ~set) != 0) continue;
      const bool is_wanted = only.empty() ? (set & ~exact) == 0 || (set & exact) == found
                                          : NameOf(rewrites, set) == only;
      if (!is_wanted) continue;
      GraphDef graph = needed;
      RewrittenSignature form;
      form.name = NameOf(rewrites, set);
      form.declared = declared;
      if (!ApplySet(rewrites, set, inputs, &graph, &form)) continue;
      if ((set & ~exact) == 0) found |= set;
      form.tables = ReadBy(graph, declared);
      form.why_not = WhatMayNotBeLost(graph, declared);
      AddForm(graph, absl::StrCat("colcast_rewritten/", set, "/", name, "/"), &form, added);
      made.forms.push_back(std::move(form));
    }
    if (!made.forms.empty() && only.empty()) made.ids = ReadIdRanges(needed, declared);
    return made;
  }

 private:
  // What the outputs depend on. False if that has loops, may change something, or a node is
  // missing.
  bool TakeNeeded(const std::set<std::string>& inputs, const SignatureDef& declared,
                  GraphDef* needed) const {
    std::set<std::string> seen;
    std::vector<std::string> open;
    for (const auto& [alias, info] : declared.outputs()) open.push_back(NodeOf(info.name()));
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (!seen.insert(name).second) continue;
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) return false;
      const NodeDef& node = *found->second;
      if (MayChangeSomething(node)) return false;
      for (const std::string_view loop : kLoops) {
        if (absl::EndsWith(node.op(), loop)) return false;
      }
      *needed->add_node() = node;
      if (inputs.count(name) > 0) {
        needed->mutable_node()->rbegin()->clear_input();
        continue;
      }
      for (const std::string& input : node.input()) open.push_back(NodeOf(input));
    }
    *needed->mutable_library() = graph_.library();
    *needed->mutable_versions() = graph_.versions();
    return true;
  }

  static std::string NameOf(const std::vector<engine::Rewrite>& rewrites, unsigned set) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < rewrites.size(); ++i) {
      if ((set >> i & 1) != 0) names.push_back(rewrites[i].name);
    }
    return absl::StrJoin(names, ", ");
  }

  // Applies the rewrites whose bits are set. False if one of them finds nothing.
  static bool ApplySet(const std::vector<engine::Rewrite>& rewrites, unsigned set,
                       const std::set<std::string>& inputs, GraphDef* graph,
                       RewrittenSignature* form) {
    for (size_t i = 0; i < rewrites.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const absl::StatusOr<int> places = rewrites[i].apply(inputs, graph);
      if (!places.ok() || *places == 0) return false;
      absl::StrAppend(&form->says, form->says.empty() ? "" : ", ", *places, rewrites[i].does);
      form->exact = form->exact && rewrites[i].exact;
      if (!rewrites[i].exact) form->loses.emplace(rewrites[i].name);
      form->tolerance_share = std::min(form->tolerance_share, rewrites[i].tolerance_share);
    }
    return true;
  }

  static void AddForm(const GraphDef& graph, const std::string& prefix, RewrittenSignature* form,
                      GraphDef* added) {
    const std::set<std::string> changed =
        Behind(graph, [](const NodeDef& node) { return absl::StartsWith(node.op(), "Colcast"); });
    for (const NodeDef& node : graph.node()) {
      if (changed.count(node.name()) > 0) *added->add_node() = Renamed(node, changed, prefix);
    }
    for (auto& [alias, info] : *form->declared.mutable_outputs()) {
      if (changed.count(NodeOf(info.name())) > 0) info.set_name(prefix + info.name());
    }
  }

  // An output that differs by a little or not at all, a rank or a threshold say, where it depends
  // on what is rounded: trials need not have a request for which it is another one. Empty if none
  // does.
  static std::string WhatMayNotBeLost(const GraphDef& graph, const SignatureDef& declared) {
    const std::set<std::string> rounded = Behind(graph, Rounds);
    for (const auto& [alias, info] : declared.outputs()) {
      const bool is_close =
          info.dtype() == tensorflow::DT_FLOAT || info.dtype() == tensorflow::DT_DOUBLE;
      if (is_close || rounded.count(NodeOf(info.name())) == 0) continue;
      return absl::StrCat("output \"", alias, "\" depends on it, and is of ",
                          tensorflow::DataTypeString(info.dtype()), ", which has to be the same");
    }
    return "";
  }

  static bool Rounds(const NodeDef& node) {
    const auto in_int8 = node.attr().find("in_int8");
    return node.op() == Bfloat16ProductOpName() || node.op() == Int8ProductOpName() ||
           (in_int8 != node.attr().end() && in_int8->second.list().i_size() > 0);
  }

  // Some ops and all that depends on one.
  static std::set<std::string> Behind(const GraphDef& graph, bool (*is_one)(const NodeDef&)) {
    std::map<std::string, std::vector<std::string>> readers;
    std::vector<std::string> open;
    for (const NodeDef& node : graph.node()) {
      for (const std::string& input : node.input()) readers[NodeOf(input)].push_back(node.name());
      if (is_one(node)) open.push_back(node.name());
    }
    std::set<std::string> behind;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (!behind.insert(name).second) continue;
      open.insert(open.end(), readers[name].begin(), readers[name].end());
    }
    return behind;
  }

  static NodeDef Renamed(NodeDef node, const std::set<std::string>& changed,
                         const std::string& prefix) {
    node.set_name(prefix + node.name());
    node.mutable_attr()->erase("_class");  // colocation with the original
    for (std::string& input : *node.mutable_input()) {
      if (changed.count(NodeOf(input)) == 0) continue;
      const bool waits = absl::StartsWith(input, "^");
      input = absl::StrCat(waits ? "^" : "", prefix, absl::StripPrefix(input, "^"));
    }
    return node;
  }

  const GraphDef& graph_;
  std::map<std::string, const NodeDef*> by_name_;
};

}  // namespace

RewrittenSignatures AddRewrittenSignatures(const std::vector<Rewrite>& rewrites,
                                           const WantForms& want, tensorflow::MetaGraphDef* model) {
  GraphDef added;
  RewrittenSignatures rewritten;
  const Rewriter rewriter(model->graph_def());
  for (const auto& [name, declared] : model->signature_def()) {
    const WantedForms wanted = want(name);
    if (!wanted.any) continue;
    SignatureForms made = rewriter.Rewrite(name, declared, rewrites, wanted.only, &added);
    if (!made.forms.empty()) rewritten[name] = std::move(made);
  }
  for (NodeDef& node : *added.mutable_node()) {
    *model->mutable_graph_def()->add_node() = std::move(node);
  }
  return rewritten;
}

}  // namespace colcast::engine
