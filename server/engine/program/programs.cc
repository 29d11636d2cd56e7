#include "server/engine/program/programs.h"

#include <utility>

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// A worker thread keeps its own.
PlannedRequest* ThreadScratch() {
  thread_local PlannedRequest planned;
  return &planned;
}

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

}  // namespace

absl::Status Programs::Run(const DecodedRequest& request, RunResult* result) const {
  PlannedRequest* const received = ThreadScratch();
  absl::Status status = signature_->Receive(request, received);
  return status.ok() ? RunReceived(received, result) : status;
}

absl::Status Programs::RunReceived(PlannedRequest* received, RunResult* result) const {
  const auto& [exact, stages, rows, indexed, joined] = others_;
  if (indexed != nullptr && indexed->Take(*received)) {
    Batch batch;
    absl::Status status = indexed->Plan(*received, &batch);
    return status.ok() ? indexed->Run(batch, received->outputs, {&counts_, &name_}, result)
                       : status;
  }
  if (stages != nullptr && stages->IsPrefetch(*received)) {
    return stages->Prefetch(*received, result);
  }
  const bool keeps_states = stages != nullptr || rows != nullptr;
  if (exact != nullptr && !keeps_states && exact->Fits(*received) &&
      exact->signature().Plan(received).ok()) {
    return RunSignature(exact->signature(), Program::kExact, *received, result);
  }
  // An error speaks of the signature that was asked for.
  if (absl::Status status = signature_->Plan(received); !status.ok()) return status;
  if (keeps_states && RunWithStates(*received, result)) return absl::OkStatus();
  return RunSignature(*signature_, Program::kWhole, *received, result);
}

absl::Status Programs::RunSignature(const Signature& signature, Program program,
                                    const PlannedRequest& planned, RunResult* result) const {
  thread_local std::vector<Tensor> feeds;
  absl::Status status = signature.BuildFeeds(planned, &feeds);
  if (status.ok()) status = Count(program, signature.RunFeeds(feeds, planned.outputs, result));
  result->expansion = planned.Expansion();
  DropLarge(&feeds);
  return status;
}

// False where nothing is to be gained, or something failed: then the whole signature runs.
bool Programs::RunWithStates(const PlannedRequest& planned, RunResult* result) const {
  result->expansion = planned.Expansion();
  const bool by_stages = others_.stages != nullptr;
  const absl::StatusOr<bool> done =
      by_stages ? others_.stages->Run(planned, result) : others_.rows->Run(planned, result);
  if (done.ok() && !*done) return false;
  return Count(by_stages ? Program::kStages : Program::kRows, done.status()).ok();
}

absl::Status Programs::Plan(PlannedRequest* received, Batch* batch) const {
  if (others_.indexed != nullptr && others_.indexed->Take(*received)) {
    return others_.indexed->Plan(*received, batch);
  }
  absl::Status status = signature_->Plan(received);
  if (!status.ok()) return status;
  if (has_users()) {
    others_.indexed->SetBatch(*received, batch);
    return absl::OkStatus();
  }
  *batch = Batch();
  batch->candidates = received->rows();
  for (const ColumnSource* const source : received->plan.sources) {
    batch->columns.push_back(AsWire(source));
  }
  return absl::OkStatus();
}

absl::Status Programs::Run(const Batch& batch, const std::vector<int>& outputs,
                           RunResult* result) const {
  if (batch.user_states != nullptr) {
    return Count(Program::kStages, others_.indexed->RunStages(batch, outputs, result));
  }
  if (has_users() && batch.has_index(Batch::kUser)) {
    return others_.indexed->Run(batch, outputs, {&counts_, &name_}, result);
  }
  PlannedRequest* const received = ThreadScratch();
  received->outputs = outputs;
  received->inputs.clear();
  received->plan.positions.clear();
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    if (batch.columns[i] == nullptr) continue;
    received->inputs.push_back({signature_->inputs().inputs()[i].alias, batch.columns[i]});
    received->plan.positions.push_back(static_cast<int>(i));
  }
  return RunReceived(received, result);
}

absl::Status Programs::Check(const DecodedRequest& request) const {
  PlannedRequest* const received = ThreadScratch();
  absl::Status status = signature_->Receive(request, received);
  // Each domain has rows of its own.
  if (!status.ok() || (others_.indexed != nullptr && others_.indexed->Take(*received))) {
    return status;
  }
  return signature_->Plan(received);
}

bool Programs::FillStates(const DecodedRequest& rows) const {
  PlannedRequest* const received = ThreadScratch();
  return others_.stages != nullptr && signature_->Receive(rows, received).ok() &&
         others_.stages->Fill(*received);
}

bool Programs::computes_users_once() const {
  return has_stages() && others_.stages->takes_many_users_per_run() &&
         signature_->lists().own_lengths().empty();
}

bool Programs::MayShareRuns(const BatchRules& rules) const {
  // An index of its own counts from its request's first row.
  if (never_join_ || !signature_->can_be_fetched() || signature_->takes().row_index) return false;
  // Pairs are kept request by request.
  if (others_.stages != nullptr && others_.stages->keeps_pairs()) return false;
  const RowRecord& record = signature_->record();
  if (!record.recorded) return rules.any_signature;
  return record.independent && (record.any_rounding || rules.any_signature);
}

bool Programs::CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const {
  if (!MayShareRuns(rules)) return false;
  const Signature::Takes& takes = signature_->takes();
  if (has_users()) return takes.rows_or_one_row && others_.indexed->CanBeJoined(rules);
  if (takes.rows && rules.any_signature) return true;
  return has_row_cache() && takes.rows_or_settings && signature_->RowsHaveOneShape(outputs);
}

bool Programs::CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const {
  if (!MayShareRuns(rules)) return false;
  if (!signature_->record().recorded) return signature_->takes().rows;
  // One that sends its user once is run by that.
  if (others_.exact != nullptr && !others_.exact->signature().record().independent) return false;
  return !has_row_cache() || rules.any_signature || signature_->RowsHaveOneShape(outputs);
}

std::vector<StoreStats> Programs::stores() const {
  std::vector<StoreStats> stores;
  if (others_.stages != nullptr) {
    for (const states::StoreStats& stats : others_.stages->stats())
      stores.push_back({name_, stats});
  }
  if (others_.rows != nullptr) stores.push_back({name_, others_.rows->stats()});
  return stores;
}

}  // namespace colcast::engine
