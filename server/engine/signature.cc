#include "server/engine/signature.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/op_libraries.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// An output for 0 candidates: its declared shape with every unknown dimension set to 0.
Tensor WithoutRows(const tensorflow::TensorInfo& info) {
  tensorflow::TensorShape shape;
  for (const auto& dim : info.tensor_shape().dim()) shape.AddDim(std::max<int64_t>(0, dim.size()));
  if (shape.dims() == 0) shape.AddDim(0);
  shape.set_dim(0, 0);
  return Tensor(info.dtype(), shape);
}

bool HasRowsOfOneShape(const tensorflow::TensorInfo& info) {
  const auto& dims = info.tensor_shape().dim();
  return !info.tensor_shape().unknown_rank() && !dims.empty() &&
         std::all_of(dims.begin() + 1, dims.end(), [](const auto& dim) { return dim.size() >= 0; });
}

Signature::Traits TraitsOf(absl::Span<const DeclaredInput> inputs) {
  const auto all = [inputs](auto&& is) { return std::all_of(inputs.begin(), inputs.end(), is); };
  Signature::Traits traits;
  traits.takes_rows = all([](const DeclaredInput& input) { return input.batched(); });
  traits.takes_rows_or_settings = all([](const DeclaredInput& input) {
    return input.batched() || (!input.unknown_rank && input.dims.empty());
  });
  traits.takes_rows_or_one_row = all([](const DeclaredInput& input) {
    return input.batched() || (!input.dims.empty() && input.dims[0] == 1);
  });
  traits.runs_alone = !all([](const DeclaredInput& input) { return !IsRowIndex(input.alias); });
  return traits;
}

// Whether all lengths are 0 or more. Checks only the usual encoding; false for any other one.
bool AreNatural(const WireColumn& lengths) {
  const Bytes& content = lengths.column().values.tensor_content;
  const auto count = static_cast<size_t>(lengths.count());
  if (lengths.dtype() != tensorflow::DT_INT64 || !content.contiguous() ||
      content.size() != count * sizeof(int64_t)) {
    return false;
  }
  int64_t all = 0;  // negative if any length is
  for (size_t i = 0; i < count; ++i) {
    int64_t length;
    std::memcpy(&length, content.data() + i * sizeof(length), sizeof(length));
    all |= length;
  }
  return all >= 0;
}

// Returns INVALID_ARGUMENT, with the list's name and row, for a negative length.
absl::Status CheckLengths(const ListColumns& lists, const ReceivedRequest& received) {
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < received.columns.size(); ++i) {
    const WireColumn& column = received.columns[i];
    const int position = received.plan.positions[i];
    if (position < 0 || !lists.IsLengths(position) || AreNatural(column) ||
        !ReadLengths(column, &lengths)) {
      continue;
    }
    const auto wrong =
        std::find_if(lengths.begin(), lengths.end(), [](int64_t length) { return length < 0; });
    if (wrong == lengths.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("input \"", column.column().name, "\": row ",
                                                   wrong - lengths.begin(), " has the length ",
                                                   *wrong, ", expected 0 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

ExpansionStats ReceivedRequest::Expansion() const {
  ExpansionStats stats;
  stats.rows = rows();
  if (stats.rows == 1) return stats;
  for (const ReceivedInput& input : inputs) {
    const WireColumn& column = *AsWire(input.source);
    if (column.dims().empty() || column.dims()[0] != 1) continue;
    ++stats.columns_sent_once;
    stats.bytes_saved += (stats.rows - 1) * column.WireBytes();
  }
  return stats;
}

std::vector<int> ReceivedRequest::OneRowInputs(const SignatureInputs& declared) const {
  std::vector<int> positions;
  for (size_t i = 0; i < plan.plan.actions.size(); ++i) {
    const DeclaredInput& input = declared.inputs()[i];
    const bool has_one_default = input.batched() && !input.default_dims.empty() && rows() != 1;
    if (plan.plan.actions[i] == InputAction::kExpand ||
        (plan.plan.actions[i] == InputAction::kDefault && has_one_default)) {
      positions.push_back(static_cast<int>(i));
    }
  }
  return positions;
}

absl::StatusOr<std::unique_ptr<Signature>> Signature::Create(
    const tensorflow::SignatureDef& declared, tensorflow::Session* session, const Options& options,
    const RowRecord& record, std::vector<const void*> tables) {
  const auto make_inputs = [&](bool as_sent) {
    return SignatureInputs::Create(declared, {options.max_request_rows, options.max_expanded_bytes},
                                   as_sent);
  };
  absl::StatusOr<SignatureInputs> inputs =
      make_inputs(record.one_row_inputs == OneRowInputs::kAsSent);
  if (!inputs.ok()) return inputs.status();
  if (!inputs->feedable().ok()) return inputs->feedable();
  std::unique_ptr<Signature> made(new Signature(*std::move(inputs), options, record));
  if (record.one_row_inputs == OneRowInputs::kByTrial && declared.inputs().size() > 1) {
    made->as_sent_.emplace(*make_inputs(true));
  }
  made->traits_ = TraitsOf(made->inputs_.inputs());
  made->tables_ = std::move(tables);
  const std::map<std::string, tensorflow::TensorInfo> sorted(declared.outputs().begin(),
                                                             declared.outputs().end());
  std::vector<std::string> output_tensors;
  for (const auto& [alias, info] : sorted) {
    made->AddOutput(alias, info);
    output_tensors.push_back(info.name());
  }
  made->callables_ = std::make_unique<Callables>(
      made->inputs_.feed_names(), std::move(output_tensors), session, options.inter_op_parallelism);
  return made;
}

void Signature::AddOutput(const std::string& alias, const tensorflow::TensorInfo& info) {
  if (info.encoding_case() != tensorflow::TensorInfo::kName) {
    unfetchable_ = absl::InvalidArgumentError(absl::StrCat(
        "output \"", alias, "\" of the signature is not a dense tensor and cannot be returned"));
    traits_.runs_alone = true;
  }
  all_outputs_.push_back(static_cast<int>(output_aliases_.size()));
  output_aliases_.push_back(alias);
  no_rows_.push_back(WithoutRows(info));
  rows_have_one_shape_.push_back(HasRowsOfOneShape(info));
}

bool Signature::RowsHaveOneShape(const std::vector<int>& outputs) const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [this](int output) { return rows_have_one_shape_[output]; });
}

absl::Status Signature::Receive(const DecodedRequest& request, ReceivedRequest* received) const {
  if (absl::Status status = SelectOutputs(request.output_filter, &received->outputs);
      !status.ok()) {
    return status;
  }
  const auto columns = static_cast<int64_t>(request.columns().size());
  if (columns > max_columns_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request has ", columns, " inputs; max_request_columns is ", max_columns_));
  }
  received->columns.clear();
  received->inputs.clear();
  for (const Column& column : request.columns()) {
    received->columns.emplace_back(column);
    if (absl::Status status = received->columns.back().Check(); !status.ok()) return status;
  }
  for (const WireColumn& column : received->columns) {
    received->inputs.push_back({column.column().name, &column});
  }
  inputs_.FindAll(received->inputs, &received->plan.positions);
  return CheckLengths(lists_, *received);
}

absl::Status Signature::RunFeeds(const std::vector<Tensor>& feeds, const std::vector<int>& outputs,
                                 RunResult* result) const {
  absl::Status status = callables_->Run(feeds, outputs, &result->tensors);
  if (!status.ok()) return status;
  for (const int output : outputs) result->aliases.push_back(output_aliases_[output]);
  return absl::OkStatus();
}

void Signature::NoRows(const std::vector<int>& outputs, RunResult* result) const {
  for (const int output : outputs) {
    result->aliases.push_back(output_aliases_[output]);
    result->tensors.push_back(no_rows_[output]);
  }
}

absl::Status Signature::Prepare() const {
  return RetryWithMissingOps([this] { return callables_->Prepare(all_outputs_); });
}

absl::Status Signature::SelectOutputs(const std::vector<std::string_view>& filter,
                                      std::vector<int>* outputs) const {
  if (filter.empty()) {
    *outputs = all_outputs_;
    return unfetchable_;
  }
  outputs->clear();
  for (std::string_view alias : filter) {
    const auto found = std::lower_bound(output_aliases_.begin(), output_aliases_.end(), alias);
    if (found == output_aliases_.end() || *found != alias) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output tensor alias not found in signature: ", alias,
          "; outputs expected to be in the set {", absl::StrJoin(output_aliases_, ", "), "}"));
    }
    outputs->push_back(static_cast<int>(found - output_aliases_.begin()));
  }
  std::sort(outputs->begin(), outputs->end());
  const auto twice = std::adjacent_find(outputs->begin(), outputs->end());
  if (twice != outputs->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("duplicate output tensor alias: ", output_aliases_[*twice]));
  }
  return unfetchable_;
}

}  // namespace colcast::engine
