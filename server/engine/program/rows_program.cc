#include "server/engine/program/rows_program.h"

#include <utility>
#include <vector>

namespace colcast::engine {
namespace {

// After each window of this many rows, states::ReuseEstimator judges whether caching pays.
constexpr int64_t kWindowRows = 512;

}  // namespace

RowsProgram::RowsProgram(const Signature* signature, states::StateCache* memory)
    : stage_(signature, "item", signature->traits().takes_rows_or_settings ? memory : nullptr,
             kWindowRows) {}

bool RowsProgram::Accepts(const Batch& batch) const {
  return batch.form == Batch::Form::kRows && batch.candidates > 0 && stage_.store().on() &&
         stage_.signature().RowsHaveOneShape(*batch.outputs);
}

absl::StatusOr<bool> RowsProgram::Run(const Batch& batch, RunResult* result) {
  thread_local Stage::Rows rows;
  stage_.Begin(batch.candidates, &rows);
  rows.outputs = batch.outputs;
  rows.columns.assign(batch.columns.begin(), batch.columns.end());
  stage_.SetReaders({}, &rows);  // a joined run has requests with equal longest lists
  bool gain = false;
  std::vector<tensorflow::Tensor> tensors;
  const bool runs = stage_.LookFor(&rows, &gain) && gain;
  absl::Status status = absl::OkStatus();
  if (runs) status = stage_.Complete(&rows, &tensors);
  Stage::End(&rows);
  if (!status.ok()) return status;
  if (!runs) return false;
  stage_.signature().NoRows(*batch.outputs, result);  // sets the output names
  result->tensors = std::move(tensors);
  return true;
}

}  // namespace colcast::engine
