#include "server/engine/signature_runner.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/known_rows.h"
#include "server/engine/parts.h"
#include "server/engine/several_users.h"
#include "server/engine/wire_column.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// RunOptions.inter_op_thread_pool: run on the caller's thread.
constexpr int kCallerThread = -1;

size_t LeastBytes(const Tensor& tensor) {
  const bool strings = tensor.dtype() == tensorflow::DT_STRING;
  const size_t element =
      strings ? sizeof(tensorflow::tstring) : tensorflow::DataTypeSize(tensor.dtype());
  return tensor.NumElements() * element;
}

// What is left is filled again by the thread's next request, if it has as many rows or, as for the
// user's tensors, one: small tensors cost more to allocate and to free than to fill.
void DropLarge(std::vector<Tensor>* feeds) {
  constexpr size_t kMaxKeptBytes = 4096;
  for (Tensor& feed : *feeds) {
    if (LeastBytes(feed) > kMaxKeptBytes || feed.TotalBytes() > kMaxKeptBytes) feed = Tensor();
  }
}

// What an output is without candidates: its declared shape with every unknown dimension 0.
Tensor WithoutRows(const tensorflow::TensorInfo& info) {
  tensorflow::TensorShape shape;
  for (const auto& dim : info.tensor_shape().dim()) shape.AddDim(std::max<int64_t>(0, dim.size()));
  if (shape.dims() == 0) shape.AddDim(0);
  shape.set_dim(0, 0);
  return Tensor(info.dtype(), shape);
}

// A worker thread keeps its own.
SignatureRunner::Received* ThreadScratch() {
  thread_local SignatureRunner::Received received;
  return &received;
}

bool HasRowsOfOneShape(const tensorflow::TensorInfo& info) {
  const auto& dims = info.tensor_shape().dim();
  return !info.tensor_shape().unknown_rank() && !dims.empty() &&
         std::all_of(dims.begin() + 1, dims.end(), [](const auto& dim) { return dim.size() >= 0; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<SignatureRunner>> SignatureRunner::Create(
    const tensorflow::SignatureDef& signature, tensorflow::Session* session,
    const Options& options) {
  absl::StatusOr<SignatureInputs> inputs =
      SignatureInputs::Create(signature, {options.max_request_rows, options.max_expanded_bytes});
  if (!inputs.ok()) return inputs.status();
  std::unique_ptr<SignatureRunner> runner(
      new SignatureRunner(*std::move(inputs), session, options));
  const absl::Span<const DeclaredInput> declared = runner->inputs_.inputs();
  const auto is_batched = [](const DeclaredInput& input) { return input.batched(); };
  const auto has_rows = [](const DeclaredInput& input) {
    return input.batched() || (!input.dims.empty() && input.dims[0] == 1);
  };
  const auto has_rows_or_is_setting = [](const DeclaredInput& input) {
    return input.batched() || input.dims.empty();
  };
  runner->takes_rows_only_ = std::all_of(declared.begin(), declared.end(), is_batched);
  runner->takes_rows_and_settings_ =
      std::all_of(declared.begin(), declared.end(), has_rows_or_is_setting);
  runner->takes_rows_and_users_ = std::all_of(declared.begin(), declared.end(), has_rows);
  std::map<std::string, const tensorflow::TensorInfo*> sorted;
  for (const auto& [alias, info] : signature.outputs()) sorted[alias] = &info;
  for (const auto& [alias, info] : sorted) {
    if (info->encoding_case() != tensorflow::TensorInfo::kName) {
      runner->unfetchable_ = absl::InvalidArgumentError(absl::StrCat(
          "output \"", alias, "\" of the signature is no dense tensor and cannot be returned"));
    }
    runner->all_outputs_.push_back(static_cast<int>(runner->output_aliases_.size()));
    runner->output_aliases_.push_back(alias);
    runner->output_tensors_.push_back(info->name());
    runner->no_rows_.push_back(WithoutRows(*info));
    runner->rows_have_one_shape_.push_back(HasRowsOfOneShape(*info));
  }
  return runner;
}

absl::Status SignatureRunner::Prepare() const { return FindOrMakeCallable(all_outputs_).status(); }

absl::Status SignatureRunner::Run(const DecodedRequest& request, RunResult* result) const {
  thread_local std::vector<int> outputs;
  thread_local std::vector<Tensor> feeds;
  if (absl::Status status = SelectOutputs(request.output_filter(), &outputs); !status.ok()) {
    return status;
  }
  Received* const received = ThreadScratch();
  if (absl::Status status = Receive(request, received); !status.ok()) return status;
  if (several_users_ != nullptr && request.Find(kRowToUser) != nullptr) {
    return several_users_->Run(received->inputs, outputs, result);
  }
  absl::Status status = absl::OkStatus();
  if (parts_ != nullptr || known_rows_ != nullptr) {
    status = RunWithStores(received, outputs, &feeds, result);
  } else {
    const absl::StatusOr<const SignatureRunner*> runner =
        BuildReceived(received, &feeds, &result->expansion);
    status = runner.ok() ? (*runner)->RunFeeds(feeds, outputs, result) : runner.status();
  }
  DropLarge(&feeds);
  return status;
}

absl::Status SignatureRunner::RunWithStores(Received* received, const std::vector<int>& outputs,
                                            std::vector<Tensor>* feeds, RunResult* result) const {
  inputs_.FindAll(received->inputs, &received->plan.positions);
  if (parts_ != nullptr && parts_->IsPrefetch(received->inputs, received->plan.positions)) {
    return parts_->Prefetch(received->inputs, outputs, result);
  }
  absl::Status status = inputs_.Plan(received->inputs, received->plan.positions, &received->plan);
  if (!status.ok()) return status;
  result->expansion = Summarize(*received);
  const bool done = parts_ != nullptr ? parts_->Run(received->plan, outputs, result)
                                      : known_rows_->Run(received->plan, outputs, result);
  if (done) return absl::OkStatus();
  status = inputs_.BuildFeeds(received->plan, feeds);
  return status.ok() ? RunFeeds(*feeds, outputs, result) : status;
}

bool SignatureRunner::CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const {
  // A row_to_user of its own counts from its request's first user.
  if (never_join_ || !unfetchable_.ok() || inputs_.Find(kRowToUser) >= 0) return false;
  if (known_rows_ != nullptr && takes_rows_and_settings_ && RowsHaveOneShape(outputs)) return true;
  if (!takes_rows_only_ && !(takes_rows_and_users_ && several_users_ != nullptr)) return false;
  if (parts_ != nullptr && parts_->keeps_pairs()) return false;  // they are kept request by request
  return rules.any_signature || has_parts();
}

bool SignatureRunner::CanBeDivided(const BatchRules& rules, const std::vector<int>& outputs) const {
  const bool is_independent = known_rows_ != nullptr && !never_join_ && RowsHaveOneShape(outputs);
  return is_independent || CanBeJoined(rules, outputs);
}

bool SignatureRunner::RowsHaveOneShape(const std::vector<int>& outputs) const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [this](int output) { return rows_have_one_shape_[output]; });
}

absl::Status SignatureRunner::ComputeUserStates(const Received& received,
                                                std::vector<Tensor>* states) const {
  return several_users_->UserStates(received.inputs, states);
}

absl::Status SignatureRunner::RunOfUser(const DecodedRequest& request,
                                        const std::vector<Tensor>& user_states,
                                        RunResult* result) const {
  std::vector<int> outputs;
  if (absl::Status status = SelectOutputs(request.output_filter(), &outputs); !status.ok()) {
    return status;
  }
  Received* const received = ThreadScratch();
  if (absl::Status status = Receive(request, received); !status.ok()) return status;
  return several_users_->RunOfUser(received->inputs, user_states, outputs, result);
}

bool SignatureRunner::computes_users_once() const {
  return several_users_ != nullptr && parts_ != nullptr && parts_->takes_many_users_per_run();
}

void SignatureRunner::NoRows(const std::vector<int>& outputs, RunResult* result) const {
  for (const int output : outputs) {
    result->aliases.push_back(output_aliases_[output]);
    result->tensors.push_back(no_rows_[output]);
  }
}

void SignatureRunner::UseExact(const std::string& name, const SignatureRunner& exact) {
  if (exact.output_aliases_ != output_aliases_) return;
  if (exact.inputs_.inputs().size() != inputs_.inputs().size()) return;
  bool any_once = false;
  std::vector<ExactInput> exact_inputs;
  for (size_t i = 0; i < inputs_.inputs().size(); ++i) {
    const std::string& feed = exact.inputs_.feed_names()[i];
    const DeclaredInput& theirs = exact.inputs_.inputs()[i];
    DeclaredInput expected = inputs_.inputs()[i];
    const bool once = expected.batched() && !theirs.batched();
    if (once && !expected.dims.empty()) expected.dims[0] = 1;
    any_once |= once;
    if (!absl::StartsWith(feed, name + "/inputs/") || theirs.alias != expected.alias ||
        theirs.dtype != expected.dtype || theirs.dims != expected.dims) {
      return;
    }
    exact_inputs.push_back(once               ? ExactInput::kOnce
                           : theirs.batched() ? ExactInput::kRows
                                              : ExactInput::kAsHere);
  }
  if (!any_once) return;
  exact_ = &exact;
  exact_inputs_ = std::move(exact_inputs);
}

bool SignatureRunner::FitsExact(absl::Span<const ReceivedInput> received,
                                absl::Span<const int> positions) const {
  if (exact_ == nullptr) return false;
  int64_t rows = 1;
  for (size_t i = 0; i < received.size(); ++i) {
    if (positions[i] < 0) return false;
    const ExactInput input = exact_inputs_[positions[i]];
    if (input == ExactInput::kAsHere) continue;
    const absl::Span<const int64_t> dims = received[i].source->dims();
    if (dims.empty() || (input == ExactInput::kOnce && dims[0] != 1)) return false;
    rows = std::max(rows, dims[0]);
  }
  return rows > 1;
}

absl::Status SignatureRunner::Receive(const DecodedRequest& request, Received* received) const {
  const auto columns = static_cast<int64_t>(request.column_count());
  if (columns > options_.max_request_columns) {
    return absl::ResourceExhaustedError(absl::StrCat("the request has ", columns,
                                                     " inputs; max_request_columns is ",
                                                     options_.max_request_columns));
  }
  received->columns.clear();
  received->inputs.clear();
  for (const Column& column : request) {
    received->columns.emplace_back(column);
    if (absl::Status status = received->columns.back().Check(); !status.ok()) return status;
  }
  for (size_t i = 0; i < received->columns.size(); ++i) {
    received->inputs.push_back({request.column(i).name, &received->columns[i]});
  }
  return absl::OkStatus();
}

absl::Status SignatureRunner::Plan(const DecodedRequest& request, Received* received) const {
  if (absl::Status status = Receive(request, received); !status.ok()) return status;
  inputs_.FindAll(received->inputs, &received->plan.positions);
  return inputs_.Plan(received->inputs, received->plan.positions, &received->plan);
}

ExpansionStats SignatureRunner::Summarize(const Received& received) {
  ExpansionStats stats;
  stats.rows = received.plan.plan.rows;
  if (stats.rows == 1) return stats;
  for (const WireColumn& column : received.columns) {
    if (column.dims().empty() || column.dims()[0] != 1) continue;
    ++stats.columns_sent_once;
    stats.bytes_saved += (stats.rows - 1) * column.WireBytes();
  }
  return stats;
}

absl::StatusOr<const SignatureRunner*> SignatureRunner::BuildFeeds(const DecodedRequest& request,
                                                                   std::vector<Tensor>* feeds,
                                                                   ExpansionStats* stats) const {
  Received* const received = ThreadScratch();
  if (absl::Status status = Receive(request, received); !status.ok()) return status;
  return BuildReceived(received, feeds, stats);
}

absl::StatusOr<const SignatureRunner*> SignatureRunner::BuildReceived(Received* received,
                                                                      std::vector<Tensor>* feeds,
                                                                      ExpansionStats* stats) const {
  inputs_.FindAll(received->inputs, &received->plan.positions);
  const auto build = [&](const SignatureInputs& inputs) {
    return inputs.Build(received->inputs, received->plan.positions, &received->plan, feeds);
  };
  const SignatureRunner* runner = this;
  absl::Status status = absl::OkStatus();
  if (FitsExact(received->inputs, received->plan.positions)) {
    status = build(exact_->inputs_);
    if (status.ok()) runner = exact_;
  }
  // An error speaks of the signature that was asked for.
  if (runner == this) status = build(inputs_);
  if (!status.ok()) return status;
  *stats = Summarize(*received);
  return runner;
}

absl::Status SignatureRunner::RunFeeds(const std::vector<Tensor>& feeds,
                                       const std::vector<int>& outputs, RunResult* result) const {
  absl::StatusOr<const Callable*> found = FindOrMakeCallable(outputs);
  if (!found.ok()) return found.status();
  const Callable& callable = **found;
  std::vector<Tensor> fetches;
  absl::Status status = session_->RunCallable(callable.handle, feeds, &fetches, nullptr);
  if (!status.ok()) return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    result->aliases.push_back(output_aliases_[outputs[i]]);
    result->tensors.push_back(fetches[callable.fetches[i]]);
  }
  return absl::OkStatus();
}

absl::Status SignatureRunner::SelectOutputs(const std::vector<std::string_view>& filter,
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

absl::StatusOr<const SignatureRunner::Callable*> SignatureRunner::FindOrMakeCallable(
    const std::vector<int>& outputs) const {
  {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = callables_.find(outputs);
    if (found != callables_.end()) return found->second.get();
  }
  std::unique_lock<std::shared_mutex> lock(mutex_);
  std::unique_ptr<Callable>& callable = callables_[outputs];
  if (callable == nullptr) {
    absl::StatusOr<std::unique_ptr<Callable>> made = MakeCallable(outputs);
    if (!made.ok()) {
      callables_.erase(outputs);
      return made.status();
    }
    callable = *std::move(made);
  }
  return callable.get();
}

absl::StatusOr<std::unique_ptr<SignatureRunner::Callable>> SignatureRunner::MakeCallable(
    const std::vector<int>& outputs) const {
  auto callable = std::make_unique<Callable>();
  tensorflow::CallableOptions options;
  for (const std::string& feed : inputs_.feed_names()) options.add_feed(feed);
  for (int output : outputs) {
    const std::string& tensor = output_tensors_[output];
    const auto& fetches = options.fetch();
    const int position = std::find(fetches.begin(), fetches.end(), tensor) - fetches.begin();
    if (position == fetches.size()) options.add_fetch(tensor);
    callable->fetches.push_back(position);
  }
  if (options_.inter_op_parallelism == 0)
    options.mutable_run_options()->set_inter_op_thread_pool(kCallerThread);
  absl::Status status = session_->MakeCallable(options, &callable->handle);
  if (!status.ok()) return status;
  return callable;
}

}  // namespace colcast::engine
