#include "server/engine/program/row_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/engine/wire_column.h"

namespace colcast::engine {
namespace {

// Rows after which the store is judged (states::ReuseEstimator).
constexpr int64_t kStretch = 512;

bool HasInputOfOneRow(const Signature& signature) {
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [](const DeclaredInput& input) {
    return !input.batched() && !input.dims.empty();
  });
}

Stage MakeStage(const Signature* signature, const StateCaches& memories) {
  if (HasInputOfOneRow(*signature)) return {signature, "pair", memories.pair.get(), kStretch};
  return {signature, "item", memories.item.get(), kStretch};
}

}  // namespace

RowCache::RowCache(const Signature* signature, const StateCaches& memories)
    : stage_(MakeStage(signature, memories)) {}

absl::StatusOr<bool> RowCache::Run(const PlannedRequest& planned, RunResult* result) {
  const int64_t count = planned.rows();
  const std::vector<int>& outputs = planned.outputs;
  if (count == 0 || !stage_.store().on() || !stage_.signature().RowsHaveOneShape(outputs))
    return false;
  thread_local Stage::Rows rows;
  stage_.Begin(count, &rows);
  rows.outputs = &outputs;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    rows.columns[i] = static_cast<const WireColumn*>(planned.plan.sources[i]);
  }
  bool gain = false;
  std::vector<tensorflow::Tensor> tensors;
  const bool look = stage_.LookFor(&rows, &gain) && gain;
  absl::Status status = absl::OkStatus();
  if (look) status = stage_.Complete(&rows, &tensors);
  rows.columns.clear();  // neither the message nor what was found outlives the request
  rows.found.clear();
  if (!status.ok()) return status;
  if (!look) return false;
  stage_.signature().NoRows(outputs, result);  // their names
  result->tensors = std::move(tensors);
  return true;
}

}  // namespace colcast::engine
