#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/program/staged_program.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;

}  // namespace

bool StagedProgram::IsPrefetch(const PlannedRequest& received) const {
  size_t users = 0;
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const int position = received.plan.positions[i];
    if (position < 0) return false;
    const bool is_user = is_user_input_[position];
    const absl::Span<const int64_t> dims = received.inputs[i].source->dims();
    users += is_user;
    if (!is_user && (dims.empty() || dims[0] != 0)) return false;
  }
  return users > 0;
}

absl::Status StagedProgram::Prefetch(const PlannedRequest& received, RunResult* result) {
  Stage& stage = domains_[kUser].stage;
  Batch batch;
  batch.domains.resize(domains_.size());
  batch.columns.resize(late_->inputs().inputs().size());
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage::Rows& user = scratch->rows[kUser];
  std::vector<ReceivedInput> of_user;
  for (const ReceivedInput& input : received.inputs) {
    const int position = stage.signature().inputs().Find(input.alias);
    if (position < 0) continue;
    user.columns[position] = AsWire(input.source);
    of_user.push_back(input);
  }
  SignatureInputs::Scratch& plan = user.inputs;
  stage.signature().inputs().FindAll(of_user, &plan.positions);
  absl::Status status = stage.signature().inputs().Plan(of_user, plan.positions, &plan);
  if (status.ok() && plan.plan.rows != 1) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a request without candidates has ", plan.plan.rows, " users; expected 1"));
  }
  if (status.ok() && stage.store().on()) {
    size_t num_found = 0;
    std::vector<Tensor> states;
    // Where a value is malformed, the run says so.
    stage.Find(&user, &num_found);
    status = stage.Complete(&user, &states);
  }
  End(scratch);
  result->expansion.rows = 0;
  if (status.ok()) late_->NoRows(received.outputs, result);
  return status;
}

bool StagedProgram::Fill(const PlannedRequest& received) {
  for (size_t i = kItem; i < domains_.size(); ++i) {
    Stage& stage = domains_[i].stage;
    Scratch* const scratch = ThreadScratch();
    if (scratch->rows.size() < domains_.size()) scratch->rows.resize(domains_.size());
    Stage::Rows& rows = scratch->rows[i];
    int64_t others = 0;
    const WireColumn* any = nullptr;
    for (const WireColumn& column : received.columns) {
      const bool is_own = stage.signature().inputs().Find(column.column().name) >= 0;
      if (is_own && !column.dims().empty()) any = &column;
      others += !is_own && late_->inputs().Find(column.column().name) >= 0;
    }
    if (any == nullptr || others > 0) continue;
    stage.Begin(any->dims()[0], &rows);
    for (const WireColumn& column : received.columns) {
      const int position = stage.signature().inputs().Find(column.column().name);
      if (position >= 0) rows.columns[position] = &column;
    }
    const bool filled = stage.Fill(&rows);
    End(scratch);
    return filled;
  }
  return false;
}

}  // namespace colcast::engine
