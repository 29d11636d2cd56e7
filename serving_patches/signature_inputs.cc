#include "serving_patches/signature_inputs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/map.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorInfo;
using tensorflow::TensorShape;

DeclaredInput Declare(const std::string& alias, const TensorInfo& info) {
  DeclaredInput input;
  input.alias = alias;
  input.dtype = tensorflow::BaseType(info.dtype());
  // A signature written by hand may leave out the shape, which is not the same as a scalar's shape.
  input.unknown_rank = !info.has_tensor_shape() || info.tensor_shape().unknown_rank();
  if (!input.unknown_rank) {
    for (const auto& dim : info.tensor_shape().dim()) input.dims.push_back(dim.size());
  }
  return input;
}

// Returns INVALID_ARGUMENT if no tensor can be fed to the input.
absl::Status CheckFeedable(const std::string& alias, const TensorInfo& info) {
  if (info.encoding_case() == TensorInfo::kName) return absl::OkStatus();
  const char* const what = info.has_coo_sparse()         ? "a sparse tensor (coo_sparse)"
                           : info.has_composite_tensor() ? "a composite tensor"
                                                         : "without a tensor's name";
  return absl::InvalidArgumentError(absl::StrCat("the signature declares input \"", alias, "\" as ",
                                                 what, ": only dense tensors can be fed"));
}

// Adds the input's name to the message, unless the message begins with it.
absl::Status WithAlias(absl::string_view alias, const absl::Status& status) {
  if (absl::StartsWith(status.message(), "input ")) return status;
  return absl::Status(status.code(), absl::StrCat("input \"", alias, "\": ", status.message()));
}

// A misspelt input is also a missing one, so the message reports both.
absl::Status UnknownError(absl::Span<const absl::string_view> unknown,
                          const absl::Status& planned) {
  std::vector<std::string> phrases;
  for (const absl::string_view alias : unknown) {
    phrases.push_back(absl::StrCat("input \"", alias, "\" is not in the signature"));
  }
  if (!planned.ok()) phrases.emplace_back(planned.message());
  return absl::InvalidArgumentError(JoinPhrases(phrases));
}

absl::Status BuildShape(Dims dims, bool batched, int64_t rows, TensorShape* shape) {
  if (batched && !dims.empty()) dims[0] = rows;
  return TensorShape::BuildTensorShape(dims, shape);
}

}  // namespace

absl::StatusOr<SignatureInputs> SignatureInputs::Create(const tensorflow::SignatureDef& signature,
                                                        const Limits& limits, bool as_sent) {
  using Entry = google::protobuf::Map<std::string, TensorInfo>::value_type;
  std::vector<const Entry*> entries;
  entries.reserve(signature.inputs().size());
  for (const Entry& entry : signature.inputs()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->first < b->first; });

  SignatureInputs result(limits);
  result.inputs_.reserve(entries.size());
  result.feed_names_.reserve(entries.size());
  result.positions_.reserve(entries.size());
  result.defaults_.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [alias, info] = *entries[i];
    result.positions_.emplace(alias, static_cast<int>(i));
    result.feed_names_.push_back(info.name());
    result.unfeedable_.Update(CheckFeedable(alias, info));
    result.inputs_.push_back(Declare(alias, info));
    const auto found = signature.defaults().find(alias);
    if (found == signature.defaults().end()) continue;
    if (absl::Status status = result.SetDefault(i, found->second); !status.ok()) return status;
  }
  FindOtherDomains(absl::MakeSpan(result.inputs_));
  PairLists(absl::MakeSpan(result.inputs_));
  if (as_sent) {
    for (DeclaredInput& input : result.inputs_) input.other_domain = true;
  }
  return result;
}

absl::Status SignatureInputs::SetDefault(int position, const tensorflow::TensorProto& proto) {
  DeclaredInput& input = inputs_[position];
  Tensor& value = defaults_[position];
  if (!value.FromProto(proto)) {
    return absl::InvalidArgumentError(absl::StrCat("the signature's default of input \"",
                                                   input.alias, "\" does not decode as a tensor"));
  }
  input.has_default = true;
  input.default_dtype = value.dtype();
  default_bytes_ += static_cast<double>(value.TotalBytes());
  for (int d = 0; d < value.dims(); ++d) input.default_dims.push_back(value.dim_size(d));
  return absl::OkStatus();
}

int SignatureInputs::Find(absl::string_view alias) const {
  const auto found = positions_.find(alias);
  return found == positions_.end() ? -1 : found->second;
}

absl::Status SignatureInputs::Plan(Columns columns, absl::Span<const absl::string_view> unknown,
                                   ExpansionPlan* plan) const {
  if (!unfeedable_.ok()) return unfeedable_;
  std::vector<ReceivedShape> shapes(inputs_.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSource* const column = columns[i];
    if (column != nullptr) shapes[i] = {false, column->dtype(), column->dims()};
  }
  if (!unknown.empty()) return UnknownError(unknown, PlanExpansion(inputs_, shapes, plan));
  const auto extra_bytes = [columns](size_t position, int64_t copies) {
    return columns[position]->ExtraBytes(copies);
  };
  return PlanShapes(shapes, std::numeric_limits<double>::infinity(), extra_bytes, plan);
}

absl::Status SignatureInputs::PlanShapes(
    absl::Span<const ReceivedShape> shapes, double most_bytes,
    absl::FunctionRef<double(size_t position, int64_t copies)> extra_bytes,
    ExpansionPlan* plan) const {
  if (!unfeedable_.ok()) return unfeedable_;
  if (absl::Status status = PlanExpansion(inputs_, shapes, plan); !status.ok()) return status;
  return CheckLimits(*plan, most_bytes, extra_bytes);
}

absl::Status SignatureInputs::BuildRows(int position, const ColumnSource* source, int64_t rows,
                                        Tensor* feed) const {
  const absl::Status status = Expand(position, source, rows, feed);
  return status.ok() ? status : WithAlias(inputs_[position].alias, status);
}

absl::Status SignatureInputs::CheckLimits(
    const ExpansionPlan& plan, double most_bytes,
    absl::FunctionRef<double(size_t, int64_t)> extra_bytes) const {
  if (plan.rows > limits_.max_rows) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request has N = ", plan.rows, " rows; max_request_rows is ", limits_.max_rows));
  }
  const auto limit = static_cast<double>(limits_.max_expanded_bytes);
  if (most_bytes + default_bytes_ * plan.rows <= limit) return absl::OkStatus();
  double bytes = 0;
  double most = -1;
  size_t largest = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputAction action = plan.actions[i];
    const int64_t copies = action == InputAction::kPass ? 1 : plan.rows;
    const double extra = action != InputAction::kDefault ? extra_bytes(i, copies)
                         : inputs_[i].batched()
                             ? static_cast<double>(defaults_[i].TotalBytes()) * copies
                             : 0;
    bytes += extra;
    if (extra > most) {
      most = extra;
      largest = i;
    }
  }
  if (bytes <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("repeated to N = ", plan.rows, " rows, the inputs would take ", bytes,
                   " bytes more than were sent, most of them input \"", inputs_[largest].alias,
                   "\"; ", limits_.max_expanded_bytes_setting, " is ", limits_.max_expanded_bytes));
}

absl::Status SignatureInputs::Expand(int position, const ColumnSource* source, int64_t rows,
                                     Tensor* feed) const {
  const DeclaredInput& input = inputs_[position];
  TensorShape target;
  if (source == nullptr) {
    absl::Status status = BuildShape(input.default_dims, rows != kAsSent, rows, &target);
    return status.ok() ? RepeatRow(defaults_[position], target, feed) : status;
  }
  const absl::Span<const int64_t> dims = source->dims();
  const bool expand = rows != kAsSent && !dims.empty() && dims[0] == 1;
  absl::Status status = BuildShape(Dims(dims.begin(), dims.end()), expand, rows, &target);
  return status.ok() ? source->BuildTensor(target, feed) : status;
}

}  // namespace colcast
