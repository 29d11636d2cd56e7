#include "server/engine/known_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/engine/wire_column.h"

namespace colcast::engine {
namespace {

// Rows after which the store is judged (states::Prospects).
constexpr int64_t kStretch = 512;

bool HasInputOfOneRow(const SignatureRunner& runner) {
  const absl::Span<const DeclaredInput> inputs = runner.inputs().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [](const DeclaredInput& input) {
    return !input.batched() && !input.dims.empty();
  });
}

Part MakePart(const SignatureRunner* runner, const StateMemories& memories) {
  if (HasInputOfOneRow(*runner)) return {runner, "pair", memories.pair.get(), kStretch, {}};
  return {runner, "item", memories.item.get(), kStretch, {}};
}

}  // namespace

KnownRows::KnownRows(const SignatureRunner* runner, const StateMemories& memories)
    : part_(MakePart(runner, memories)) {}

bool KnownRows::Run(const SignatureInputs::Scratch& plan, const std::vector<int>& outputs,
                    RunResult* result) {
  const int64_t count = plan.plan.rows;
  if (count == 0 || !part_.store().on() || !part_.runner().RowsHaveOneShape(outputs)) return false;
  thread_local Part::Rows rows;
  part_.Begin(count, &rows);
  rows.outputs = &outputs;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    rows.columns[i] = static_cast<const WireColumn*>(plan.sources[i]);
  }
  bool gain = false;
  std::vector<tensorflow::Tensor> tensors;
  const bool done = part_.LookFor(&rows, &gain) && gain &&
                    part_.Complete(&rows, /*claim=*/nullptr, &tensors).ok();
  rows.columns.clear();  // neither the message nor what was found outlives the request
  rows.found.clear();
  if (!done) return false;
  part_.runner().NoRows(outputs, result);  // their names
  result->tensors = std::move(tensors);
  return true;
}

}  // namespace colcast::engine
