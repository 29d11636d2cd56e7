#include "server/engine/part.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/picked_column.h"
#include "server/wire/tensor_values.h"

namespace colcast::engine {
namespace {

using states::StateRef;
using states::Store;
using tensorflow::Tensor;

// Beyond it a thread keeps no tensors from one request to the next.
constexpr int64_t kMostKeptRows = 1;

}  // namespace

Part::Part(const SignatureRunner* runner, std::string_view name, states::Memory* memory,
           int64_t stretch, const std::vector<std::string>& padded)
    : runner_(runner), store_(name, memory, stretch) {
  const SignatureInputs& inputs = runner->inputs();
  lengths_.assign(inputs.inputs().size(), -1);
  // Where a state has the padding's shape, rows that are padded differently cannot be laid out
  // together: they are to have different keys.
  if (!runner->RowsHaveOneShape(runner->all_outputs())) return;
  for (const std::string& column : padded) {
    const int position = inputs.Find(column);
    const int lengths = inputs.Find(absl::StrCat(column, "/length"));
    if (position < 0 || lengths < 0) continue;
    if (inputs.inputs()[lengths].dtype == tensorflow::DT_INT64) lengths_[position] = lengths;
  }
}

void Part::Begin(int64_t count, Rows* rows) const {
  rows->count = count;
  rows->columns.assign(runner_->inputs().inputs().size(), nullptr);
  rows->wanted.clear();
  rows->outputs = nullptr;
  rows->keys.clear();
  rows->found.clear();
}

bool Part::MakeKeys(Rows* rows) const {
  rows->row_keys.Begin(rows->count, store_.hash());
  rows->row_columns.assign(rows->columns.size(), -1);
  int next = 0;
  for (size_t i = 0; i < rows->columns.size(); ++i) {
    const WireColumn* const column = rows->columns[i];
    if (column == nullptr) {
      rows->row_keys.AddAbsent();
    } else if (runner_->inputs().inputs()[i].batched() && !column->dims().empty() &&
               column->dims()[0] == rows->count) {
      rows->row_columns[i] = next++;
      const int64_t* const lengths = ReadLengths(i, rows);
      if (!rows->row_keys.AddRows(column->column(), column->count(), lengths).ok()) return false;
    } else {
      rows->row_keys.AddShared(column->column());
    }
  }
  rows->row_keys.Finish(&rows->keys);
  if (rows->outputs != nullptr && *rows->outputs != runner_->all_outputs()) AddOutputs(rows);
  return true;
}

// Makes the keys those of the states of these outputs.
void Part::AddOutputs(Rows* rows) const {
  const std::vector<int>& outputs = *rows->outputs;
  std::vector<uint8_t> bytes(sizeof(states::Key));
  const auto* const numbers = reinterpret_cast<const uint8_t*>(outputs.data());
  bytes.insert(bytes.end(), numbers, numbers + outputs.size() * sizeof(int));
  for (states::Key& key : rows->keys) {
    std::memcpy(bytes.data(), &key, sizeof(key));
    key = store_.hash()(bytes.data(), bytes.size());
  }
}

// Null where the column has none, or none that fit it, so that every value counts.
const int64_t* Part::ReadLengths(size_t input, Rows* rows) const {
  const WireColumn* const lengths = lengths_[input] < 0 ? nullptr : rows->columns[lengths_[input]];
  const absl::Span<const int64_t> dims = rows->columns[input]->dims();
  if (lengths == nullptr || lengths->dims() != dims.first(1) || dims.size() < 2) return nullptr;
  rows->lengths.resize(rows->count);
  if (!CopyValues(lengths->column(), lengths->count(), rows->lengths.data()).ok()) return nullptr;
  for (const int64_t length : rows->lengths) {
    if (length < 0 || length > dims[1]) return nullptr;
  }
  return rows->lengths.data();
}

bool Part::Find(Rows* rows, size_t* num_found) {
  *num_found = 0;
  if (rows->keys.empty() && !MakeKeys(rows)) return false;
  rows->num_ended = store_.num_ended();
  *num_found = store_.FindAll(rows->keys, &rows->found);
  return true;
}

bool Part::LookFor(Rows* rows, bool* gain) {
  if (!store_.on() || !store_.prospects().Look()) {
    rows->keys.clear();
    store_.counters().Add(&states::Counters::not_looked, rows->count);
    return true;
  }
  size_t num_found = 0;
  if (!Find(rows, &num_found)) return false;
  const bool good = store_.prospects().good();
  *gain |= num_found > 0 || good;
  if (!good) rows->keys.clear();  // without a key nothing is kept
  return true;
}

bool Part::FindOne(Rows* rows, Store::Claim* claim) {
  if (rows->keys.empty() && !MakeKeys(rows)) return false;
  rows->num_ended = store_.num_ended();
  rows->found.resize(1);
  rows->found[0] =
      claim == nullptr ? store_.Find(rows->keys[0]) : store_.FindOrClaim(rows->keys[0], claim);
  return true;
}

absl::Status Part::Complete(Rows* rows, Store::Claim* claim, std::vector<Tensor>* states) {
  rows->found.resize(rows->count);
  CollectMissing(rows);
  rows->awaited.clear();
  std::vector<Tensor> made;
  Store::Work work;
  const bool claimed = claim != nullptr && claim->held();
  if (!rows->missing.empty() && !rows->keys.empty() && !claimed) {
    store_.Begin(rows->keys, rows->num_ended, &rows->missing, &rows->awaited, &rows->found, &work);
  }
  absl::Status status = ComputeAndKeep(rows, claim, &made);
  work.End();
  if (status.ok() && !rows->awaited.empty()) {
    store_.Await(rows->keys, rows->awaited, &rows->found, work);
    rows->awaited.clear();
    CollectMissing(rows);  // where nobody could keep them
    status = ComputeAndKeep(rows, claim, &made);
  }
  if (!status.ok()) return status;
  const size_t wanted = rows->wanted.empty() ? rows->count : rows->wanted.size();
  if (rows->missing.size() == wanted) {
    *states = std::move(made);
    return absl::OkStatus();
  }
  return LayOutStates(layouts_, rows->found, rows->wanted, made, states);
}

void Part::CollectMissing(Rows* rows) const {
  rows->missing.clear();
  const auto collect = [rows](int64_t row) {
    if (!rows->found[row]) rows->missing.push_back(row);
  };
  if (rows->wanted.empty()) {
    for (int64_t row = 0; row < rows->count; ++row) collect(row);
  } else {
    for (const int64_t row : rows->wanted) collect(row);
  }
}

absl::Status Part::ComputeAndKeep(Rows* rows, Store::Claim* claim, std::vector<Tensor>* made) {
  made->clear();
  if (rows->missing.empty()) return absl::OkStatus();
  absl::Status status = Compute(rows, made);
  if (status.ok()) Keep(*made, claim, rows);
  return status;
}

absl::Status Part::Compute(Rows* rows, std::vector<Tensor>* made) {
  const auto num_missing = static_cast<int64_t>(rows->missing.size());
  const bool all = num_missing == rows->count;
  rows->places.assign(all ? 0 : rows->count, -1);
  if (!all) {
    for (int64_t i = 0; i < num_missing; ++i) rows->places[rows->missing[i]] = i;
  }
  std::vector<PickedColumn> picked;
  picked.reserve(rows->columns.size());
  std::vector<ReceivedInput> received;
  std::vector<int> positions;
  for (size_t i = 0; i < rows->columns.size(); ++i) {
    const WireColumn* const column = rows->columns[i];
    if (column == nullptr) continue;
    const ColumnSource* source = column;
    if (!all && rows->row_columns[i] >= 0) {
      source = &picked.emplace_back(*column, rows->row_keys, rows->row_columns[i], rows->missing,
                                    rows->places);
    }
    received.push_back({runner_->inputs().inputs()[i].alias, source});
    positions.push_back(static_cast<int>(i));
  }
  absl::Status status = runner_->inputs().Build(received, positions, &rows->inputs, &rows->feeds);
  RunResult result;
  const std::vector<int>& outputs =
      rows->outputs == nullptr ? runner_->all_outputs() : *rows->outputs;
  if (status.ok()) status = runner_->RunFeeds(rows->feeds, outputs, &result);
  if (num_missing > kMostKeptRows) rows->feeds.clear();
  if (!status.ok()) return status;
  for (const Tensor& tensor : result.tensors) {
    if (tensor.dims() > 0 && tensor.dim_size(0) == num_missing) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("a state of ", num_missing, " rows came as ", tensor.shape().DebugString()));
  }
  *made = std::move(result.tensors);
  return absl::OkStatus();
}

void Part::Keep(const std::vector<Tensor>& made, Store::Claim* claim, Rows* rows) {
  const std::optional<uint32_t> layout =
      rows->keys.empty() ? std::nullopt : layouts_.NumberOf(made);
  if (!layout) {
    store_.counters().Add(&states::Counters::computed, static_cast<int64_t>(rows->missing.size()));
    return;
  }
  for (size_t i = 0; i < rows->missing.size(); ++i) {
    const int64_t row = rows->missing[i];
    StateRef state = MakeState(layouts_.at(*layout), *layout, made, static_cast<int64_t>(i));
    // `made` is of these rows only: with those awaited all are laid out from what was kept.
    if (!rows->awaited.empty()) rows->found[row] = state;
    if (claim != nullptr && claim->held()) {
      claim->Fulfil(std::move(state));
    } else {
      store_.Insert(rows->keys[row], std::move(state));
    }
  }
}

}  // namespace colcast::engine
