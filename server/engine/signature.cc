#include "server/engine/signature.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/op_libraries.h"
#include "server/engine/rows.h"
#include "tf_patches/repeat_row.h"

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

// Whether all lengths are from 0 to `most`. Also false for lengths that are not int64 in one
// contiguous tensor_content.
bool AreWithin(const Input& lengths, int64_t most) {
  const Bytes& content = lengths.column().values.tensor_content;
  const auto count = static_cast<size_t>(lengths.count());
  if (lengths.dtype() != tensorflow::DT_INT64 || !content.contiguous() ||
      content.size() != count * sizeof(int64_t)) {
    return false;
  }
  bool are_within = true;
  for (size_t i = 0; i < count; ++i) {
    uint64_t length;  // unsigned, so that a negative length exceeds `most`
    std::memcpy(&length, content.data() + i * sizeof(length), sizeof(length));
    are_within &= length <= static_cast<uint64_t>(most);
  }
  return are_within;
}

// Returns INVALID_ARGUMENT, with the input's name and the row, for a length that is negative or
// exceeds the width of `list`, which may be null. Graphs allocate memory by these lengths.
absl::Status CheckLengths(const Input& input, const Input* list) {
  const bool has_width = list != nullptr && list->dims().size() > 1;
  const int64_t most = has_width ? list->dims()[1] : std::numeric_limits<int64_t>::max();
  std::vector<int64_t> lengths;
  if (AreWithin(input, most) || !ReadLengths(input, &lengths)) return absl::OkStatus();
  const auto wrong = std::find_if(lengths.begin(), lengths.end(),
                                  [most](int64_t length) { return length < 0 || length > most; });
  if (wrong == lengths.end()) return absl::OkStatus();
  const std::string expected =
      *wrong < 0 ? "0 or more"
                 : absl::StrCat("at most ", most, ", the width of \"", list->name(), "\"");
  return absl::InvalidArgumentError(absl::StrCat("input \"", input.name(), "\": row ",
                                                 wrong - lengths.begin(), " has the length ",
                                                 *wrong, ", expected ", expected));
}

}  // namespace

ListColumns::ListColumns(const SignatureInputs& inputs, const RowRecord& record)
    : lengths_(inputs.inputs().size(), -1), is_lengths_(inputs.inputs().size(), false) {
  const auto lengths_of = [&inputs](const std::string& list) {
    const int lengths = inputs.Find(absl::StrCat(list, "/length"));
    const bool are_numbers = lengths >= 0 && inputs.inputs()[lengths].dtype == tensorflow::DT_INT64;
    return are_numbers ? lengths : -1;
  };
  for (const std::string& list : record.lists) {
    const int position = inputs.Find(list);
    if (position < 0) continue;
    lengths_[position] = lengths_of(list);
    if (lengths_[position] >= 0) is_lengths_[lengths_[position]] = true;
  }
  for (const std::string& list : record.own_length) {
    // An input may be named like a list's lengths without holding them.
    const bool has_lengths = std::count(record.lists.begin(), record.lists.end(), list) > 0;
    if (has_lengths && lengths_of(list) >= 0) own_lengths_.push_back(lengths_of(list));
  }
}

void ReceivedRequest::Add(const Input& input, int position) {
  const absl::Span<const int64_t> dims = input.dims();
  const bool is_text = input.dtype() == tensorflow::DT_STRING;
  const double text = is_text ? static_cast<double>(input.WireBytes()) : 0;
  const double tensor = input.TensorBytes();
  if (position < 0) {
    has_unknown = true;
  } else {
    columns[position] = &input;
    shapes[position] = {false, input.dtype(), dims};
  }
  if (dims.empty()) {
    has_setting = true;
    bytes += tensor;
    return;
  }
  most_rows = std::max(most_rows, dims[0]);
  may_lack_candidates |= dims[0] == 0;
  if (dims[0] != 1) {
    bytes += tensor;
    text_bytes += text;
    return;
  }
  ++sent_once;
  bytes_sent_once += input.WireBytes();
  bytes_once += tensor;
  text_bytes_once += text;
}

absl::Status ReceivedRequest::Plan(const SignatureInputs& with) {
  if (has_unknown) {
    std::vector<absl::string_view> unknown;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (positions[i] < 0) unknown.push_back(inputs[i].name());
    }
    const std::vector<const ColumnSource*> sent(columns.begin(), columns.end());
    return with.Plan(sent, unknown, &plan);  // fails, and names the unknown inputs
  }
  const auto extra_bytes = [this](size_t position, int64_t copies) {
    return columns[position]->ExtraBytes(copies);
  };
  return with.PlanShapes(shapes, bytes + bytes_once * most_rows, extra_bytes, &plan);
}

ExpansionStats ReceivedRequest::Expansion() const {
  ExpansionStats stats;
  stats.rows = rows();
  if (stats.rows == 1) return stats;
  stats.columns_sent_once = sent_once;
  stats.bytes_saved = (stats.rows - 1) * bytes_sent_once;
  return stats;
}

std::vector<int> ReceivedRequest::OneRowInputs(const SignatureInputs& declared) const {
  std::vector<int> positions;
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const DeclaredInput& input = declared.inputs()[i];
    const bool has_one_default = input.batched() && !input.default_dims.empty() && rows() != 1;
    if (plan.actions[i] == InputAction::kExpand ||
        (plan.actions[i] == InputAction::kDefault && has_one_default)) {
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
  const size_t declared = inputs_.inputs().size();
  received->inputs.clear();
  received->inputs.reserve(columns);  // pointers to its elements stay valid
  received->positions.resize(columns, -1);
  received->columns.assign(declared, nullptr);
  received->shapes.assign(declared, ReceivedShape());
  received->most_rows = 1;
  received->has_setting = received->has_unknown = false;
  received->may_lack_candidates = columns < static_cast<int64_t>(declared);
  received->sent_once = received->bytes_sent_once = 0;
  received->bytes = received->bytes_once = received->text_bytes = received->text_bytes_once = 0;
  for (const Column& column : request.columns()) {
    Input& input = received->inputs.emplace_back(column);
    if (absl::Status status = input.Check(); !status.ok()) return status;
    // The thread's last request probably had its columns in the same order.
    int& position = received->positions[received->inputs.size() - 1];
    position = inputs_.Find(column.name, position);
    received->Add(input, position);
  }
  for (size_t i = 0; i < declared; ++i) {
    const int of = lists_.LengthsOf(i);
    if (of < 0 || received->columns[of] == nullptr) continue;
    absl::Status status = CheckLengths(*received->columns[of], received->columns[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Signature::RunFeeds(const std::vector<Tensor>& feeds, const std::vector<int>& outputs,
                                 RunResult* result) const {
  absl::Status status = callables_->Run(feeds, outputs, &result->tensors);
  if (!status.ok()) return lookup_errors_.Explained(status, feeds);
  for (const int output : outputs) result->aliases.push_back(output_aliases_[output]);
  return absl::OkStatus();
}

void Signature::NoRows(const std::vector<int>& outputs, RunResult* result) const {
  for (const int output : outputs) {
    result->aliases.push_back(output_aliases_[output]);
    result->tensors.push_back(no_rows_[output]);
  }
}

absl::Status Signature::Prepare() const { return WithMissingOp(callables_->Prepare(all_outputs_)); }

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
