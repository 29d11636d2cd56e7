#include "server/engine/rewrites/feature_chain.h"

#include <algorithm>
#include <string_view>

#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::Node;
using tensorflow::PartialTensorShape;
using Kind = IdStep::Kind;
using Result = LookupChain::Result;

bool IsInteger(DataType type) {
  return type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64;
}

// Whether AsString writes an integer in plain decimal form.
bool WritesDecimals(const Node& node) {
  return IsInteger(Attribute<DataType>(node, "T")) && Attribute<int64_t>(node, "width") == -1 &&
         Attribute<std::string>(node, "fill").empty();
}

// Whether a StridedSlice takes everything and only adds axes, like column[:, None].
bool OnlyAddsAxes(const ShapedGraph& graph, const Node& node) {
  const auto begin = Attribute<int64_t>(node, "begin_mask");
  const auto end = Attribute<int64_t>(node, "end_mask");
  const auto whole =
      Attribute<int64_t>(node, "new_axis_mask") | Attribute<int64_t>(node, "ellipsis_mask");
  const auto strides = graph.Integers(In(node, 3));
  if (Attribute<int64_t>(node, "shrink_axis_mask") != 0 || !strides.has_value()) return false;
  for (size_t i = 0; i < strides->size(); ++i) {
    const int64_t bit = int64_t{1} << i;
    const bool takes_all = (begin & bit) != 0 && (end & bit) != 0 && (*strides)[i] == 1;
    if ((whole & bit) == 0 && !takes_all) return false;
  }
  return true;
}

// The number of values per row, if the shape has rows and their size is known.
std::optional<int64_t> ValuesInRow(const PartialTensorShape& shape) {
  if (shape.dims() < 1) return {};
  int64_t values = 1;
  for (int i = 1; i < shape.dims(); ++i) {
    if (shape.dim_size(i) < 0) return {};
    values *= shape.dim_size(i);
  }
  return values;
}

class ChainReader {
 public:
  explicit ChainReader(const ShapedGraph& graph) : graph_(graph) {}

  std::optional<FeatureChain> Read(Output part) {
    const PartialTensorShape shape = graph_.ShapeOf(part);
    if (shape.dims() != 2 || !tensorflow::DataTypeCanUseMemcpy(part.type())) return {};
    if (ReadLookup(part, shape.dim_size(1)) || ReadCopy(part, shape.dim_size(1))) {
      const bool is_known = shape.dim_size(0) >= 0;
      if (is_known && chain_.rows.node == nullptr) chain_.shape.set_dim(0, shape.dim_size(0));
      return std::move(chain_);
    }
    chain_ = FeatureChain();  // the column is copied unchanged
    chain_.column = part;
    chain_.shape = shape;
    return std::move(chain_);
  }

 private:
  bool Is(Output tensor, std::string_view op) const { return graph_.Is(tensor, op); }

  // Adds `tensor`'s node to the chain and returns the node's input.
  Output Pass(Output tensor, int input = 0) {
    chain_.nodes.push_back(tensor.node);
    return In(tensor, input);
  }

  // Whether the node's output has its input's values in the same order, possibly in another shape.
  bool KeepsValues(Output tensor) const {
    if (Is(tensor, "Identity") || Is(tensor, "Squeeze")) return true;
    if (Is(tensor, "Reshape") || Is(tensor, "ExpandDims")) {
      return graph_.Integers(In(tensor, 1)).has_value();
    }
    return Is(tensor, "StridedSlice") && OnlyAddsAxes(graph_, *tensor.node);
  }

  Output PassShapes(Output tensor) {
    while (true) {
      if (KeepsValues(tensor)) {
        tensor = Pass(tensor);
      } else if (const Output rows = Repeats(tensor); rows.node != nullptr) {
        tensor = PassRepeat(tensor, rows);
      } else {
        return tensor;
      }
    }
  }

  // If the node is a Tile that repeats a single row and nothing else, returns its first multiple,
  // the number of repetitions.
  Output Repeats(Output tensor) const {
    if (!Is(tensor, "Tile") || chain_.rows.node != nullptr) return {};
    const PartialTensorShape repeated = graph_.ShapeOf(In(tensor, 0));
    const Output multiples = In(tensor, 1);
    if (repeated.dims() < 1 || repeated.dim_size(0) != 1 || !Is(multiples, "ConcatV2")) return {};
    const Output rows = In(multiples, 0);
    const PartialTensorShape one({1});
    if (rows.type() != tensorflow::DT_INT32 || !graph_.ShapeOf(rows).IsIdenticalTo(one)) return {};
    for (int i = 1; i < multiples.node->num_inputs() - 1; ++i) {
      const auto others = graph_.Integers(In(multiples, i));
      if (!others.has_value() ||
          std::count(others->begin(), others->end(), 1) != static_cast<int64_t>(others->size())) {
        return {};
      }
    }
    return rows;
  }

  Output PassRepeat(Output tensor, Output rows) {
    chain_.rows = rows;
    return Pass(tensor);
  }

  bool ReadCopy(Output part, int64_t width) {
    chain_ = FeatureChain();
    SetColumn(PassShapes(part));
    return width >= 0 && ValuesInRow(chain_.shape) == width && RepeatsOneRow();
  }

  // If an EnsureShape follows the column, the grouped lookup checks the shape instead.
  void SetColumn(Output column) {
    chain_.shape = graph_.ShapeOf(column);
    chain_.column = Is(column, "EnsureShape") ? Pass(column) : column;
  }

  // Returns false if the column is repeated but might not have exactly one row.
  bool RepeatsOneRow() const {
    return chain_.rows.node == nullptr || chain_.shape.dim_size(0) == 1;
  }

  bool ReadLookup(Output part, int64_t width) {
    Output tensor = PassShapes(part);
    chain_.chain.result = Result::kGather;
    masked_ = width % 8 == 0 ? ReadMaskedMean(graph_, tensor) : std::nullopt;
    if (masked_.has_value()) {
      chain_.chain.result = Result::kMean;
      chain_.nodes.insert(chain_.nodes.end(), masked_->nodes.begin(), masked_->nodes.end());
      tensor = masked_->rows;
    } else if (width % 8 == 0 && tensor.type() == tensorflow::DT_FLOAT &&
               SumsLists(graph_, tensor)) {  // SumRows() gives the same bits
      chain_.chain.result = Result::kSum;
      tensor = Pass(tensor);
      if (const Output rows = Repeats(tensor); rows.node != nullptr) {
        tensor = PassRepeat(tensor, rows);
      }
    }
    Output ids = ReadGather(tensor, width);
    if (ids.node == nullptr || !IsInteger(ids.type())) return false;
    const bool sums = chain_.chain.result != Result::kGather;
    if (sums && graph_.ShapeOf(ids).dims() != 2) return false;
    const Output column = ReadSteps(ids, /*may_reshape=*/!sums);
    if (masked_.has_value() != chain_.chain.Hides()) return false;
    auto& steps = chain_.chain.steps;
    std::reverse(steps.begin(), steps.end());
    SetColumn(column);
    if (chain_.column.type() == tensorflow::DT_STRING) {
      if (steps.empty() || steps.front().kind != Kind::kHash) return false;
    } else if (!IsInteger(chain_.column.type())) {
      return false;
    }
    const bool fits = sums ? chain_.shape.dims() == 2 : ValuesInRow(chain_.shape) == 1;
    return fits && RepeatsOneRow();
  }

  // Returns the ids if `tensor` gathers rows of a matrix of `width` columns.
  Output ReadGather(Output tensor, int64_t width) {
    const Node& node = *tensor.node;
    const bool resource = Is(tensor, "ResourceGather");
    const bool second = Is(tensor, "GatherV2");
    if (!resource && !second && !Is(tensor, "Gather")) return {};
    if ((resource || second) && Attribute<int64_t>(node, "batch_dims") != 0) return {};
    if (second && graph_.Integer(In(node, 2)) != 0) return {};
    const Output ids = Pass(tensor, 1);
    const PartialTensorShape gathered = graph_.ShapeOf(tensor);
    const int rank = gathered.dims();
    if (width < 0 || rank < 2 || rank != graph_.ShapeOf(ids).dims() + 1 ||
        gathered.dim_size(rank - 1) != width) {
      return {};
    }
    chain_.lookup = node.name();
    chain_.table = In(node, 0);
    if (Is(chain_.table, "ReadVariableOp")) chain_.table = Pass(chain_.table);
    return ids;
  }

  // Reads the chain's steps from last to first. Returns the tensor to which the first step applies.
  Output ReadSteps(Output ids, bool may_reshape) {
    while (true) {
      const bool hides = masked_.has_value() && IsSame(ids, masked_->ids);
      if (hides && !chain_.chain.Hides()) Add(Kind::kHide, masked_->hidden);
      if (Is(ids, "Identity") || (may_reshape && KeepsValues(ids))) {
        ids = Pass(ids);
        continue;
      }
      if (const Output rows = Repeats(ids); rows.node != nullptr) {
        ids = PassRepeat(ids, rows);
        continue;
      }
      const Output from = ReadStep(ids);
      if (from.node == nullptr) return ids;
      ids = from;
    }
  }

  Output ReadStep(Output ids) {
    if (Is(ids, "StringToHashBucketFast")) {
      return ReadHash(ids);
    }
    if (!IsInteger(ids.type())) return {};
    if (Is(ids, "Cast") && IsInteger(Attribute<DataType>(*ids.node, "SrcT"))) {
      if (ids.type() == tensorflow::DT_INT32) Add(Kind::kInt32, 0);
      return Pass(ids);
    }
    if (Is(ids, "FloorMod")) {
      const auto modulus = graph_.Integer(In(ids, 1));
      if (!modulus.has_value() || *modulus <= 0) return {};
      Add(Kind::kMod, *modulus);
      return Pass(ids);
    }
    if (Is(ids, "Maximum")) return ReadBound(ids, Kind::kAtLeast);
    if (Is(ids, "Minimum")) return ReadBound(ids, Kind::kAtMost);
    if (Is(ids, "ClipByValue")) return ReadClip(ids);
    return Is(ids, "SelectV2") ? ReadWrap(ids) : Output{};
  }

  Output ReadHash(Output ids) {
    Add(Kind::kHash, Attribute<int64_t>(*ids.node, "num_buckets"));
    const Output text = Pass(ids);
    return Is(text, "AsString") && WritesDecimals(*text.node) ? Pass(text) : text;
  }

  Output ReadBound(Output ids, Kind kind) {
    for (const int constant : {1, 0}) {
      const auto bound = graph_.Integer(In(ids, constant));
      if (!bound.has_value()) continue;
      Add(kind, *bound);
      return Pass(ids, 1 - constant);
    }
    return {};
  }

  Output ReadClip(Output ids) {
    const auto least = graph_.Integer(In(ids, 1));
    const auto most = graph_.Integer(In(ids, 2));
    if (!least.has_value() || !most.has_value() || *least > *most) return {};
    Add(Kind::kAtMost, *most);
    Add(Kind::kAtLeast, *least);
    return Pass(ids);
  }

  // Matches ids < 0 ? ids + rows : ids.
  Output ReadWrap(Output ids) {
    const Output below = In(ids, 0);
    const Output added = In(ids, 1);
    const Output from = In(ids, 2);
    if (!Is(below, "Less") || !Is(added, "AddV2")) return {};
    const auto rows = graph_.Integer(In(added, 1));
    if (!IsSame(In(below, 0), from) || !IsSame(In(added, 0), from) ||
        graph_.Integer(In(below, 1)) != 0 || !rows.has_value() || *rows <= 0) {
      return {};
    }
    Add(Kind::kWrap, *rows);
    chain_.nodes.push_back(below.node);
    chain_.nodes.push_back(added.node);
    return Pass(ids, 2);
  }

  void Add(Kind kind, int64_t value) { chain_.chain.steps.push_back({kind, value}); }

  const ShapedGraph& graph_;
  FeatureChain chain_;
  std::optional<MaskedMean> masked_;
};

}  // namespace

std::optional<FeatureChain> ReadFeatureChain(const ShapedGraph& graph, Output part) {
  return ChainReader(graph).Read(part);
}

}  // namespace colcast::engine
