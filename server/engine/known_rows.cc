#include "server/engine/known_rows.h"

#include <algorithm>
#include <cstring>

#include "server/engine/wire_column.h"
#include "server/states/key.h"
#include "server/states/store.h"

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
  states::Store& store = part_.store();
  const int64_t count = plan.plan.rows;
  if (count == 0 || !store.on() || !part_.runner().RowsHaveOneShape(outputs)) return false;
  if (!store.prospects().Look()) {
    store.counters().Add(&states::Counters::not_looked, count);
    return false;
  }
  thread_local Part::Rows rows;
  part_.Begin(count, &rows);
  rows.outputs = &outputs;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    rows.columns[i] = static_cast<const WireColumn*>(plan.sources[i]);
  }
  const bool done = MakeKeys(&rows) && RunMissing(&rows, result);
  rows.columns.clear();  // neither the message nor what was found outlives the request
  rows.found.clear();
  return done;
}

// What was computed for other outputs is no answer.
bool KnownRows::MakeKeys(Part::Rows* rows) {
  if (!part_.MakeKeys(rows)) return false;
  const std::vector<int>& outputs = *rows->outputs;
  if (outputs == part_.runner().all_outputs()) return true;
  std::vector<uint8_t> bytes(sizeof(states::Key));
  const auto* const numbers = reinterpret_cast<const uint8_t*>(outputs.data());
  bytes.insert(bytes.end(), numbers, numbers + outputs.size() * sizeof(int));
  for (states::Key& key : rows->keys) {
    std::memcpy(bytes.data(), &key, sizeof(key));
    key = part_.store().hash()(bytes.data(), bytes.size());
  }
  return true;
}

bool KnownRows::RunMissing(Part::Rows* rows, RunResult* result) {
  size_t num_found = 0;
  if (!part_.Find(rows, &num_found)) return false;
  const bool good = part_.store().prospects().good();
  if (!good && num_found == 0) return false;
  if (!good) rows->keys.clear();  // without a key nothing is kept
  std::vector<tensorflow::Tensor> tensors;
  if (!part_.Complete(rows, nullptr, &tensors).ok()) return false;
  part_.runner().NoRows(*rows->outputs, result);  // their names
  result->tensors = std::move(tensors);
  return true;
}

}  // namespace colcast::engine
