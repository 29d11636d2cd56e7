#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/scratch.h"
#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "server/engine/rewrites/lookup_tables.h"
#include "server/engine/rewrites/rewrites.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using Result = LookupChain::Result;

// All features write this many rows before any feature writes more, so that the output rows stay in
// the cache.
constexpr int64_t kRowsAtOnce = 32;
// How many ids of a feature are computed at once, rounded to whole rows.
constexpr int64_t kIdsAtOnce = 4096;

struct Feature {
  LookupChain chain;
  PartialTensorShape shape;
  std::string lookup;
  int table = -1;
  // The position, in the op's input `rows`, of the number of times that the single row is repeated;
  // -1 if it is not repeated.
  int rows = -1;
};

// One feature's source and output columns, in one run.
struct Part {
  const Feature* feature;
  const Tensor* column;
  const LookupTable* table;  // null if the column is copied
  int64_t rows;              // number of rows in the output
  int64_t values;            // per row of the column
  int64_t width;             // per row of the output
  size_t offset = 0;         // in bytes, within an output row
};

int64_t ValuesInRow(const Tensor& column) {
  int64_t values = 1;
  for (int dim = 1; dim < column.dims(); ++dim) values *= column.dim_size(dim);
  return values;
}

// Reads column values from position `first` and applies the chain's steps.
void FindIds(const Part& part, int64_t first, absl::Span<int64_t> ids, absl::Span<float> weights) {
  absl::Span<const IdStep> steps = part.feature->chain.steps;
  switch (part.column->dtype()) {
    case tensorflow::DT_STRING:
      HashStrings(part.column->flat<tensorflow::tstring>().data() + first, steps.front().value,
                  ids);
      steps.remove_prefix(1);
      break;
    case tensorflow::DT_INT32:
      std::copy_n(part.column->flat<int32_t>().data() + first, ids.size(), ids.begin());
      break;
    default:
      std::copy_n(part.column->flat<int64_t>().data() + first, ids.size(), ids.begin());
  }
  ApplySteps(steps, ids, weights);
}

absl::Status CheckPart(const Part& part, int64_t first, absl::Span<const int64_t> ids) {
  return CheckIds(ids, part.table->rows(), part.column->shape(), first, part.feature->lookup);
}

// The op ColcastGroupedLookup: does the work of many features' lookups and of the Concat that joins
// them, writing each feature's rows directly into the joined matrix. It exists only in the server;
// a SavedModel never contains it.
//
// Inputs:
//   columns  one tensor per feature, rows first
//   tables   matrices of the output's type, or handles of variables that hold one
//   rows     numbers of rows, each of shape [1]
// Attributes with one element per feature:
//   chains   the steps applied to the column's values (lookup_chain.h)
//   table    position in `tables`; -1 if the column is copied
//   rows_of  position in `rows` of a single row's number of repetitions; otherwise -1
//   shapes   the shape that the column must fit
//   lookups  the node that did the lookup, for error messages
// The attribute `int8_tables` lists the positions in `tables` of variables to be read in int8
// (lookup_tables.h). Output: [rows, the sum of the features' widths].
//
// Errors are those of the replaced ops: Gather's for an id that is not a row of the table,
// EnsureShape's for a column's shape, ConcatV2's for different numbers of rows.
class GroupedLookupOp final : public tensorflow::OpKernel {
 public:
  explicit GroupedLookupOp(OpKernelConstruction* construction) : OpKernel(construction) {
    std::vector<std::string> chains, lookups;
    std::vector<PartialTensorShape> shapes;
    std::vector<int> tables, rows;
    OP_REQUIRES_OK(construction, construction->GetAttr("chains", &chains));
    OP_REQUIRES_OK(construction, construction->GetAttr("lookups", &lookups));
    OP_REQUIRES_OK(construction, construction->GetAttr("shapes", &shapes));
    OP_REQUIRES_OK(construction, construction->GetAttr("table", &tables));
    OP_REQUIRES_OK(construction, construction->GetAttr("rows_of", &rows));
    OP_REQUIRES_OK(construction, construction->GetAttr("T", &type_));
    OP_REQUIRES_OK(construction, construction->GetAttr("int8_tables", &int8_));
    tensorflow::DataTypeVector table_types;
    OP_REQUIRES_OK(construction, construction->GetAttr("tables_types", &table_types));
    variables_ = std::make_unique<TableVariables>(table_types.size());
    for (size_t i = 0; i < chains.size(); ++i) {
      const absl::StatusOr<LookupChain> chain = LookupChain::Parse(chains[i]);
      OP_REQUIRES_OK(construction, chain.status());
      features_.push_back({*chain, shapes[i], lookups[i], tables[i], rows[i]});
    }
  }

  void Compute(OpKernelContext* context) override {
    std::vector<LookupTable> tables;
    OP_REQUIRES_OK(context, ReadLookupTables(context, type_, int8_, variables_.get(), &tables));
    std::vector<Part> parts;
    OP_REQUIRES_OK(context, FindParts(context, tables, &parts));
    const int64_t rows = parts.front().rows;
    int64_t width = 0;
    for (Part& part : parts) {
      part.offset = width * value_bytes();
      width += part.width;
    }
    Tensor* joined = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {rows, width}, &joined));
    if (rows == 0) {
      for (const Part& part : parts) OP_REQUIRES_OK(context, CheckIdsOf(part));
      return;
    }
    char* const data = static_cast<char*>(joined->data());
    const size_t stride = width * value_bytes();
    for (int64_t row = 0; row < rows; row += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, rows - row);
      for (const Part& part : parts) {
        const OutputRows output{data + row * stride + part.offset, stride};
        if (part.feature->rows < 0) {
          OP_REQUIRES_OK(context, Write(part, row, count, output));
        } else {
          const char* const one = data + part.offset;
          if (row == 0) OP_REQUIRES_OK(context, Write(part, 0, 1, output));
          RepeatRow(one, part.width * value_bytes(), count, output);
        }
      }
    }
  }

 private:
  size_t value_bytes() const { return tensorflow::DataTypeSize(type_); }

  absl::Status FindParts(OpKernelContext* context, const std::vector<LookupTable>& tables,
                         std::vector<Part>* parts) const {
    OpInputList columns, repeats;
    if (absl::Status status = context->input_list("columns", &columns); !status.ok()) return status;
    if (absl::Status status = context->input_list("rows", &repeats); !status.ok()) return status;
    parts->reserve(features_.size());
    for (size_t i = 0; i < features_.size(); ++i) {
      const Feature& feature = features_[i];
      const Tensor& column = columns[i];
      if (!feature.shape.IsCompatibleWith(column.shape())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Shape of tensor ", def().input(i), " ", column.shape().DebugString(),
            " is not compatible with expected shape ", feature.shape.DebugString(), "."));
      }
      const LookupTable* const table = feature.table < 0 ? nullptr : &tables[feature.table];
      const int64_t values = ValuesInRow(column);
      const int64_t rows =
          feature.rows < 0 ? column.dim_size(0) : repeats[feature.rows].flat<int32_t>()(0);
      parts->push_back(
          {&feature, &column, table, rows, values, table == nullptr ? values : table->width()});
      const Part& first = parts->front();
      if (rows != first.rows || rows < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "ConcatOp : Dimension 0 in both shapes must be equal: shape[0] = [", first.rows, ",",
            first.width, "] vs. shape[", i, "] = [", rows, ",", parts->back().width, "]"));
      }
    }
    return absl::OkStatus();
  }

  // Checks ids of a row that is repeated 0 times, which TensorFlow's ops would also check.
  static absl::Status CheckIdsOf(const Part& part) {
    if (part.table == nullptr || part.feature->rows < 0) return absl::OkStatus();
    std::vector<int64_t> ids(part.values);
    std::vector<float> weights(part.values);
    FindIds(part, 0, absl::MakeSpan(ids), absl::MakeSpan(weights));
    return CheckPart(part, 0, ids);
  }

  // Writes a feature's values for `count` rows, beginning with row `first`.
  absl::Status Write(const Part& part, int64_t first, int64_t count, OutputRows output) const {
    if (part.table == nullptr) {
      Copy(part, first, count, output);
      return absl::OkStatus();
    }
    const int64_t step = std::max<int64_t>(1, kIdsAtOnce / std::max<int64_t>(1, part.values));
    thread_local std::vector<int64_t> ids;
    thread_local std::vector<float> weights;
    const FreeIfLarge free_ids(&ids);
    const FreeIfLarge free_weights(&weights);
    const bool hides = part.feature->chain.Hides();
    for (int64_t row = 0; row < count; row += step) {
      const int64_t begin = (first + row) * part.values;
      ids.resize(std::min(step, count - row) * part.values);
      weights.resize(hides ? ids.size() : 0);
      FindIds(part, begin, absl::MakeSpan(ids), absl::MakeSpan(weights));
      if (absl::Status status = CheckPart(part, begin, ids); !status.ok()) return status;
      if (part.table->changed != nullptr) part.table->changed->Redirect(ids.data(), ids.size());
      Look(part, ids, weights, std::min(step, count - row),
           {output.begin + row * output.stride, output.stride});
    }
    return absl::OkStatus();
  }

  void Copy(const Part& part, int64_t first, int64_t count, OutputRows output) const {
    const char* const column = static_cast<const char*>(part.column->data());
    CopyRows(column, part.width * value_bytes(), first, count, output);
  }

  void Look(const Part& part, absl::Span<const int64_t> ids, absl::Span<const float> weights,
            int64_t rows, OutputRows output) const {
    const bool is_gather = part.feature->chain.result == Result::kGather;
    if (const Int8Table* const int8 = part.table->int8.get(); int8 != nullptr) {
      return is_gather ? int8->Gather(ids, output) : int8->Sum(ids, rows, output);
    }
    const char* const table = static_cast<const char*>(part.table->values.data());
    if (is_gather) {
      GatherRows(table, part.width * value_bytes(), ids, output);
    } else {
      SumRows(reinterpret_cast<const float*>(table), part.width, ids, weights, rows, output);
    }
    if (part.feature->chain.result == Result::kMean) {
      DivideRows(part.width, weights, rows, output);
    }
  }

  std::vector<Feature> features_;
  DataType type_;
  std::vector<int> int8_;  // positions of tables read in int8
  std::unique_ptr<TableVariables> variables_;
};

REGISTER_OP("ColcastGroupedLookup")
    .Input("columns: columns_types")
    .Input("tables: tables_types")
    .Input("rows: num_rows * int32")
    .Output("joined: T")
    .Attr("columns_types: list(type) >= 1")
    .Attr("tables_types: list(type)")
    .Attr("T: type")
    .Attr("chains: list(string)")
    .Attr("num_rows: int >= 0")
    .Attr("table: list(int)")
    .Attr("rows_of: list(int)")
    .Attr("shapes: list(shape)")
    .Attr("lookups: list(string)")
    .Attr("joined_shape: shape")
    .Attr("fed_shape: shape")
    .Attr("int8_tables: list(int) = []")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      // The optimizer does not know the shapes of fed tensors. It orders multiplications by shape,
      // so bits would change if it knew more about this op's output than about the Concat's.
      std::vector<tensorflow::shape_inference::ShapeHandle> columns;
      TF_RETURN_IF_ERROR(context->input("columns", &columns));
      const bool is_fed = std::any_of(columns.begin(), columns.end(), [context](auto column) {
        return !context->RankKnown(column);
      });
      PartialTensorShape joined;
      TF_RETURN_IF_ERROR(context->GetAttr(is_fed ? "fed_shape" : "joined_shape", &joined));
      tensorflow::shape_inference::ShapeHandle shape;
      TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(joined, &shape));
      context->set_output(0, shape);
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("ColcastGroupedLookup").Device(tensorflow::DEVICE_CPU),
                        GroupedLookupOp);

}  // namespace

const char* GroupedLookupOpName() { return "ColcastGroupedLookup"; }

}  // namespace colcast::engine
