#include "server/engine/lookup_errors.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/engine/mapping/gather_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace colcast::engine {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// The node of the table that `input` reads, possibly through reads and identities; null if missing.
const NodeDef* TableOf(const GraphView& nodes, const std::string& input) {
  const NodeDef* node = nodes.Find(input);
  while (node != nullptr && (node->op() == "Identity" || node->op() == "ReadVariableOp")) {
    node = node->input().empty() ? nullptr : nodes.Find(node->input(0));
  }
  return node;
}

// The number of rows of a variable or constant; -1 if it is unknown.
int64_t RowsOf(const NodeDef& table) {
  const auto shape = table.attr().find("shape");
  if (shape != table.attr().end() && shape->second.shape().dim_size() > 0) {
    return shape->second.shape().dim(0).size();
  }
  const auto value = table.attr().find("value");
  const bool is_constant = value != table.attr().end();
  return is_constant && value->second.tensor().tensor_shape().dim_size() > 0
             ? value->second.tensor().tensor_shape().dim(0).size()
             : -1;
}

// An index and its limit in a message like "indices[0,1] = 41 is not in [0, 41)".
struct WrongIndex {
  int64_t index = 0;
  int64_t limit = 0;
};

std::optional<WrongIndex> Parse(std::string_view message) {
  if (!absl::StartsWith(message, "indices[")) return std::nullopt;
  const size_t equals = message.find("= ");
  const size_t range = message.find(" is not in [0, ");
  if (equals == std::string_view::npos || range == std::string_view::npos || range < equals) {
    return std::nullopt;
  }
  std::string_view limit = message.substr(range + std::string_view(" is not in [0, ").size());
  limit = limit.substr(0, limit.find(')'));
  WrongIndex wrong;
  const std::string_view index = message.substr(equals + 2, range - equals - 2);
  const bool are_numbers =
      absl::SimpleAtoi(index, &wrong.index) && absl::SimpleAtoi(limit, &wrong.limit);
  return are_numbers ? std::make_optional(wrong) : std::nullopt;
}

bool Contains(const Tensor& tensor, int64_t value) {
  const auto has = [&](auto* begin) {
    return std::find(begin, begin + tensor.NumElements(), value) != begin + tensor.NumElements();
  };
  if (tensor.dtype() == tensorflow::DT_INT64) {
    return has(static_cast<const int64_t*>(tensor.data()));
  }
  return tensor.dtype() == tensorflow::DT_INT32 && has(static_cast<const int32_t*>(tensor.data()));
}

}  // namespace

LookupErrors::LookupErrors(const tensorflow::GraphDef& graph, const SignatureInputs& inputs) {
  const GraphView nodes(graph);
  absl::flat_hash_map<std::string_view, int> fed;  // by node
  for (size_t i = 0; i < inputs.feed_names().size(); ++i) {
    fed[absl::StripSuffix(inputs.feed_names()[i], ":0")] = static_cast<int>(i);
  }
  for (const NodeDef& node : graph.node()) {
    const bool gathers = node.op() == "GatherV2" || node.op() == "Gather" ||
                         node.op() == "ResourceGather" || IsMappedGather(node);
    if (!gathers || node.input_size() < 2) continue;
    const NodeDef* const table = TableOf(nodes, node.input(0));
    if (table == nullptr || RowsOf(*table) < 0) continue;
    Lookup& lookup = lookups_.emplace_back(Lookup{node.name(), table->name(), RowsOf(*table), {}});
    for (const NodeDef* const behind : nodes.Ancestors({node.input(1)})) {
      const auto found = fed.find(behind->name());
      if (found == fed.end()) continue;
      lookup.inputs.emplace_back(inputs.inputs()[found->second].alias, found->second);
    }
  }
}

absl::Status LookupErrors::Explained(const absl::Status& status,
                                     absl::Span<const Tensor> feeds) const {
  const std::optional<WrongIndex> wrong = Parse(status.message());
  if (!wrong) return status;
  const std::pair<std::string_view, std::string_view> said =
      absl::StrSplit(status.message(), absl::MaxSplits("\n\t [[{{node ", 1));
  const std::string_view node = said.second.substr(0, said.second.find("}}"));
  constexpr size_t kMost = 3;
  std::vector<const Lookup*> possible, certain;
  const auto input_of = [&](const Lookup& lookup) {  // empty unless exactly one input has it
    std::string_view input;
    for (const auto& [alias, position] : lookup.inputs) {
      if (!Contains(feeds[position], wrong->index)) continue;
      if (!input.empty()) return std::string_view();
      input = alias;
    }
    return input;
  };
  for (const Lookup& lookup : lookups_) {
    if (node.empty() ? lookup.rows != wrong->limit : lookup.node != node) continue;
    possible.push_back(&lookup);
    if (!input_of(lookup).empty()) certain.push_back(&lookup);
  }
  if (possible.empty()) return status;
  if (!certain.empty()) possible = std::move(certain);
  std::string text(said.first);
  for (size_t i = 0; i < std::min(possible.size(), kMost); ++i) {
    const Lookup& lookup = *possible[i];
    absl::StrAppend(&text, i == 0 ? ": " : " or ", "table \"", lookup.table, "\"");
    const std::string_view input = input_of(lookup);
    if (!input.empty()) absl::StrAppend(&text, ", input \"", input, "\"");
    absl::StrAppend(&text, " [[{{node ", lookup.node, "}}]]");
  }
  if (possible.size() > kMost) absl::StrAppend(&text, " or ", possible.size() - kMost, " more");
  return absl::Status(status.code(), text);
}

}  // namespace colcast::engine
