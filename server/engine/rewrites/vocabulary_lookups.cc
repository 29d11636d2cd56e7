#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/feature_chain.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/shaped_graph.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/lookup_interface.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/util.h"

namespace colcast::engine {
namespace {

using tensorflow::Edge;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OpInputList;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::lookup::LookupInterface;

constexpr char kVocabularyLookup[] = "ColcastVocabularyLookup";

struct VocabularyLookup {
  const Node* find;
  const Node* replaced;  // the SelectV2, or `find` if there is none
  Output values;
  Output token;  // null node if there is no token
  Output token_id;
  std::optional<PaddedList> list;
};

class LookupReader {
 public:
  explicit LookupReader(const ShapedGraph& graph) : graph_(graph) {}

  std::optional<VocabularyLookup> Read(const Node* find) const {
    if (!graph_.Is(*find, "LookupTableFindV2") ||
        In(*find, 0).node->type_string() != "HashTableV2" ||
        find->output_type(0) != tensorflow::DT_INT64 || graph_.ShapeOf(In(*find, 2)).dims() != 0) {
      return {};
    }
    VocabularyLookup lookup{find, find, In(*find, 1), {}, {}, {}};
    const auto type = lookup.values.type();
    if (type != tensorflow::DT_STRING && type != tensorflow::DT_INT64) return {};
    ReadToken(&lookup);
    lookup.list = ReadPaddedList(graph_, lookup.values);
    if (lookup.list.has_value() && !WaitsOf(lookup.list->nodes).empty()) lookup.list.reset();
    if (lookup.token.node == nullptr && !lookup.list.has_value()) return {};
    return lookup;
  }

 private:
  bool IsScalarConstant(Output tensor) const {
    return tensor.node->IsConstant() && WaitsOf({tensor.node}).empty() &&
           graph_.ShapeOf(tensor).dims() == 0;
  }

  // Finds the SelectV2 around the lookup, if there is one.
  void ReadToken(VocabularyLookup* lookup) const {
    for (const Edge* edge : lookup->find->out_edges()) {
      const Node* const select = edge->dst();
      if (edge->IsControlEdge() || edge->dst_input() != 2 || !graph_.Is(*select, "SelectV2")) {
        continue;
      }
      const Output equal = In(*select, 0);
      const Output id = In(*select, 1);
      if (!graph_.Is(equal, "Equal") || !WaitsOf({select, equal.node}).empty() ||
          !IsScalarConstant(id)) {
        continue;
      }
      const Output values = In(equal, 0);
      const Output token = In(equal, 1);
      if (!IsSame(values, lookup->values) || !IsScalarConstant(token)) continue;
      lookup->replaced = select;
      lookup->token = token;
      lookup->token_id = id;
      return;
    }
  }

  const ShapedGraph& graph_;
};

NodeDef MakeNode(const VocabularyLookup& lookup) {
  NodeDef made;
  made.set_name(lookup.replaced->name());
  made.set_op(kVocabularyLookup);
  made.set_device(lookup.find->requested_device());
  const bool has_token = lookup.token.node != nullptr;
  made.add_input(NameOf(lookup.list.has_value() ? lookup.list->column : lookup.values));
  made.add_input(NameOf(In(*lookup.find, 0)));
  made.add_input(NameOf(In(*lookup.find, 2)));
  if (lookup.list.has_value()) {
    made.add_input(NameOf(lookup.list->lengths));
    made.add_input(NameOf(lookup.list->padding));
  }
  if (has_token) {
    made.add_input(NameOf(lookup.token));
    made.add_input(NameOf(lookup.token_id));
  }
  for (const std::string& wait : WaitsOf({lookup.find})) made.add_input(wait);
  tensorflow::AddNodeAttr("T", lookup.values.type(), &made);
  tensorflow::AddNodeAttr("num_lengths", static_cast<int64_t>(lookup.list.has_value()), &made);
  tensorflow::AddNodeAttr("num_tokens", static_cast<int64_t>(has_token), &made);
  tensorflow::AddNodeAttr("gather", lookup.list.has_value() ? lookup.list->gather : "", &made);
  return made;
}

bool HasVocabularies(const GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeDef& node) { return node.op() == "LookupTableFindV2"; });
}

void SetKey(const tensorflow::tstring& value, tensorflow::tstring* key) {
  key->assign_as_view(value);
}
void SetKey(int64_t value, int64_t* key) { *key = value; }

// A cell holds the position of its key, or one of these.
constexpr int32_t kToken = -1;
constexpr int32_t kUnknown = -2;

// Collects the keys to look up, cell by cell. Skips a value that equals the one above it, the
// token, and all padding but the first.
template <typename T>
class Keys {
 public:
  Keys(const T* padding, const T* token, int64_t width)
      : padding_(padding), token_(token), width_(width), above_(width) {}

  void AddRow(const T* values, int64_t count) {
    const bool is_first = cells_.empty();
    for (int64_t i = 0; i < width_; ++i) {
      const T* const value = i < count ? values + i : padding_;
      const T* const above = above_[i];
      above_[i] = value;
      const bool is_same = !is_first && (value == above || *value == *above);
      cells_.push_back(is_same ? cells_[cells_.size() - width_] : CellOf(value));
    }
  }

  Tensor Tensors() const {
    Tensor keys(tensorflow::DataTypeToEnum<T>::value, {static_cast<int64_t>(keys_.size())});
    auto flat = keys.flat<T>();
    for (size_t i = 0; i < keys_.size(); ++i) SetKey(*keys_[i], &flat(i));
    return keys;
  }

  void Write(const int64_t* found, int64_t token_id, int64_t* ids) const {
    for (const int32_t cell : cells_) *ids++ = cell == kToken ? token_id : found[cell];
  }

 private:
  int32_t CellOf(const T* value) {
    if (value == padding_ && padding_cell_ != kUnknown) return padding_cell_;
    int32_t cell = kToken;
    if (token_ == nullptr || *value != *token_) {
      cell = static_cast<int32_t>(keys_.size());
      keys_.push_back(value);
    }
    if (value == padding_) padding_cell_ = cell;
    return cell;
  }

  const T* padding_;
  const T* token_;
  int32_t padding_cell_ = kUnknown;
  int64_t width_;
  std::vector<const T*> above_;  // per column, the value in the row above
  std::vector<const T*> keys_;
  std::vector<int32_t> cells_;
};

// The op ColcastVocabularyLookup: the ids of a column's values in a vocabulary, which is a static
// hash table. It exists only in the server; a SavedModel never contains it.
//
// Inputs: `column`, strings or int64; `table`, the vocabulary's handle; `missing`, the id of values
// that are not in it. For a padded list also `lengths` [rows] and `padding`: in each row only that
// many values count, the rest are `padding`, and the list is as wide as the longest row; `column`
// is then a matrix. With a `token`, which bypasses the lookup, also `token_id`. Output: int64 ids
// in the column's shape, or [rows, longest] for a list.
//
// Errors are those of the replaced ops: LookupTableFindV2's for a table that is uninitialized or
// has other types, GatherNd's, with the node name `gather`, for a length beyond the column's width.
template <typename T>
class VocabularyLookupOp final : public tensorflow::OpKernel {
 public:
  explicit VocabularyLookupOp(tensorflow::OpKernelConstruction* construction)
      : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("gather", &gather_));
  }

  void Compute(OpKernelContext* context) override {
    OpInputList lengths, padding, token, token_id;
    OP_REQUIRES_OK(context, context->input_list("lengths", &lengths));
    OP_REQUIRES_OK(context, context->input_list("padding", &padding));
    OP_REQUIRES_OK(context, context->input_list("token", &token));
    OP_REQUIRES_OK(context, context->input_list("token_id", &token_id));
    const Tensor& column = context->input(0);
    const bool is_list = lengths.size() > 0;
    TensorShape shape = column.shape();
    if (is_list) {
      OP_REQUIRES_OK(context, CheckLengths(column, lengths[0]));
      shape = {lengths[0].dim_size(0), Longest(lengths[0])};
    }
    const int64_t rows = shape.dims() == 0 ? 1 : shape.dim_size(0);
    const int64_t width = rows == 0 ? 0 : shape.num_elements() / rows;
    Keys<T> keys(is_list ? &padding[0].template scalar<T>()() : nullptr,
                 token.size() > 0 ? &token[0].template scalar<T>()() : nullptr, width);
    const T* const values = column.flat<T>().data();
    const int64_t stride = is_list ? column.dim_size(1) : width;
    for (int64_t row = 0; row < rows; ++row) {
      keys.AddRow(values + row * stride, is_list ? lengths[0].flat<int64_t>()(row) : width);
    }
    Tensor found;
    OP_REQUIRES_OK(context, Find(context, keys.Tensors(), &found));
    Tensor* ids = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &ids));
    keys.Write(found.flat<int64_t>().data(),
               token_id.size() > 0 ? token_id[0].scalar<int64_t>()() : 0,
               ids->flat<int64_t>().data());
  }

 private:
  static int64_t Longest(const Tensor& lengths) {
    int64_t longest = 0;
    const auto flat = lengths.flat<int64_t>();
    for (int64_t i = 0; i < flat.size(); ++i) longest = std::max<int64_t>(longest, flat(i));
    return longest;
  }

  // Checks lengths as GatherNd does, which reports the last missing position.
  absl::Status CheckLengths(const Tensor& column, const Tensor& lengths) const {
    std::string position;
    int64_t number = 0;
    const auto flat = lengths.flat<int64_t>();
    for (int64_t row = 0; row < flat.size(); ++row) {
      const int64_t length = std::max<int64_t>(0, flat(row));
      number += length;
      if (length > (row < column.dim_size(0) ? column.dim_size(1) : 0)) {
        position = absl::StrCat("indices[", number - 1, "] = [", row, ", ", length - 1, "]");
      }
    }
    if (position.empty()) return absl::OkStatus();
    const std::string shape = column.shape().DebugString();
    return absl::InvalidArgumentError(
        column.NumElements() == 0
            ? absl::StrCat("Requested more than 0 entries, but params is empty.  Params shape: ",
                           shape)
            : absl::StrCat(position, " does not index into param shape ", shape,
                           ", node name: ", gather_));
  }

  static absl::Status Find(OpKernelContext* context, const Tensor& keys, Tensor* found) {
    const Tensor* handle = nullptr;
    const Tensor* missing = nullptr;
    if (absl::Status status = context->input("table", &handle); !status.ok()) return status;
    if (absl::Status status = context->input("missing", &missing); !status.ok()) return status;
    tensorflow::core::RefCountPtr<LookupInterface> table;
    absl::Status status =
        LookupResource(context, handle->scalar<tensorflow::ResourceHandle>()(), &table);
    if (status.ok()) status = table->CheckFindArguments(keys, *missing);
    if (!status.ok()) return status;
    *found = Tensor(tensorflow::DT_INT64, keys.shape());
    return table->Find(context, keys, found, *missing);
  }

  std::string gather_;
};

REGISTER_OP(kVocabularyLookup)
    .Input("column: T")
    .Input("table: resource")
    .Input("missing: int64")
    .Input("lengths: num_lengths * int64")
    .Input("padding: num_lengths * T")
    .Input("token: num_tokens * T")
    .Input("token_id: num_tokens * int64")
    .Output("ids: int64")
    .Attr("T: {string, int64}")
    .Attr("num_lengths: int >= 0")
    .Attr("num_tokens: int >= 0")
    .Attr("gather: string")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      int lists = 0;
      TF_RETURN_IF_ERROR(context->GetAttr("num_lengths", &lists));
      context->set_output(0, lists == 0 ? context->input(0)
                                        : context->Matrix(context->Dim(context->input(3), 0),
                                                          context->UnknownDim()));
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(
    Name(kVocabularyLookup).Device(tensorflow::DEVICE_CPU).TypeConstraint<tensorflow::tstring>("T"),
    VocabularyLookupOp<tensorflow::tstring>);
REGISTER_KERNEL_BUILDER(
    Name(kVocabularyLookup).Device(tensorflow::DEVICE_CPU).TypeConstraint<int64_t>("T"),
    VocabularyLookupOp<int64_t>);

}  // namespace

absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds, GraphDef* graph) {
  if (!HasVocabularies(*graph)) return 0;
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph, feeds);
  if (!shaped.ok()) return shaped.status();
  const LookupReader reader(**shaped);
  std::map<std::string, NodeDef> made;
  // A new op waits only for nodes that the lookup waited for, so moving edges to it creates no
  // cycle.
  std::map<std::string, std::string> moved;
  for (const Node* node : (*shaped)->graph().op_nodes()) {
    const std::optional<VocabularyLookup> lookup = reader.Read(node);
    if (!lookup.has_value()) continue;
    made[lookup->replaced->name()] = MakeNode(*lookup);
    moved[absl::StrCat("^", node->name())] = absl::StrCat("^", lookup->replaced->name());
  }
  for (NodeDef& node : *graph->mutable_node()) {
    if (const auto found = made.find(node.name()); found != made.end()) node = found->second;
    MoveWaits(moved, &node);
  }
  return static_cast<int>(made.size());
}

}  // namespace colcast::engine
