#include "server/engine/program/stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/base/scratch.h"
#include "server/engine/rows.h"
#include "server/tables/overlay.h"

namespace colcast::engine {

namespace {

using states::StateRef;
using states::StateStore;
using tensorflow::Tensor;

// Merging repeated rows pays if at least one row in this many repeats another.
constexpr int64_t kFewestRepeated = 4;

// After this many consecutive requests without repeated rows, only one of this many is examined.
constexpr int64_t kUnrepeatedRequests = 16;

// After a run of more rows or elements than these, the thread frees the input tensors.
constexpr int64_t kMostKeptRows = 1;
constexpr int64_t kMostKeptElements = kMostKeptBytes / sizeof(int64_t);

// The positions, in a batch, of the lengths by which rows are grouped. If states are as wide as a
// list, these are the lengths of all lists, because only rows with equally long lists then have
// states of one shape.
std::vector<int> WidthsOf(const Signature& signature, bool rows_have_one_shape,
                          const std::vector<int>& inputs) {
  std::vector<int> lengths;
  if (rows_have_one_shape) {
    lengths = signature.lists().own_lengths();
  } else {
    for (size_t i = 0; i < signature.inputs().inputs().size(); ++i) {
      if (signature.lists().IsLengths(i)) lengths.push_back(static_cast<int>(i));
    }
  }
  if (inputs.empty()) return lengths;
  for (int& input : lengths) input = inputs[input];
  return lengths;
}

}  // namespace

Stage::Stage(const Signature* signature, std::string name, std::vector<int> inputs,
             states::StateCache* memory, int64_t window_rows)
    : signature_(signature),
      name_(std::move(name)),
      inputs_(std::move(inputs)),
      store_(name_, memory, window_rows),
      rows_have_one_shape_(signature->RowsHaveOneShape(signature->all_outputs())),
      lengths_(WidthsOf(*signature, rows_have_one_shape_, inputs_)) {}

void Stage::Begin(int64_t count, absl::Span<const Input* const> columns, Rows* rows) const {
  rows->count = count;
  rows->columns = columns;
  rows->wanted.clear();
  rows->merged.clear();
  rows->outputs = nullptr;
  rows->keys.clear();
  rows->found.clear();
  rows->hashed = false;
  rows->grouped = lengths_.empty();  // else SetReaders() groups them
}

bool Stage::SetReaders(const Readers& readers, Rows* rows) const {
  if (lengths_.empty()) return true;
  rows->grouped = rows->groups.Set(lengths_, rows->columns, rows->count, readers);
  return rows->grouped && (rows_have_one_shape_ || rows->groups.count() == 1);
}

bool Stage::MakeKeys(Rows* rows) const {
  if (!rows->grouped) return false;
  const StoredRows* const stored = StoredRowsOf(*rows);
  if (stored != nullptr && stored_keys_.Find(*stored, &rows->keys)) {
    rows->columns_in_keys.assign(signature_->inputs().inputs().size(), 0);
  } else {
    if (!HashRows(rows)) return false;
    if (stored != nullptr) stored_keys_.Insert(*stored, rows->keys);
  }
  rows->hashed = true;
  if (rows->outputs != nullptr && *rows->outputs != signature_->all_outputs()) AddOutputs(rows);
  AddMarks(rows);
  return true;
}

// Makes one key per row from all columns. Returns false if a value is malformed.
bool Stage::HashRows(Rows* rows) const {
  const absl::Span<const DeclaredInput> inputs = signature_->inputs().inputs();
  rows->row_keys.Begin(rows->count, store_.hash());
  rows->columns_in_keys.assign(inputs.size(), -1);
  int next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input* const column = ColumnOf(*rows, i);
    if (column == nullptr) {
      rows->row_keys.AddAbsent();
    } else if (HasRows(inputs[i], column, rows->count)) {
      rows->columns_in_keys[i] = next++;
      const int64_t* const lengths = LengthsOf(i, column->dims(), rows);
      if (!rows->row_keys.AddRows(column->column(), column->count(), lengths).ok()) return false;
    } else {
      rows->row_keys.AddShared(column->column());
    }
  }
  rows->row_keys.Finish(&rows->keys);
  return true;
}

// Returns the lengths of a list's rows, so that keys ignore its padding. Returns null, so that keys
// cover the padding, too, if no lengths fit the list's shape `dims`, or if states are as wide as
// the list, because states of different shapes cannot form one tensor.
const int64_t* Stage::LengthsOf(size_t input, absl::Span<const int64_t> dims, Rows* rows) const {
  const int place = rows_have_one_shape_ ? signature_->lists().LengthsOf(input) : -1;
  const Input* const column = place < 0 ? nullptr : ColumnOf(*rows, place);
  if (column == nullptr || column->dims() != dims.first(1) || dims.size() < 2) return nullptr;
  if (!ReadLengths(*column, &rows->lengths)) return nullptr;
  for (const int64_t length : rows->lengths) {
    if (length < 0 || length > dims[1]) return nullptr;
  }
  return rows->lengths.data();
}

// Returns the rows' numbers in an item table, which can stand in for the keys. Returns null unless
// all columns come from one table and have padding only where keys ignore it.
const StoredRows* Stage::StoredRowsOf(const Rows& rows) const {
  const StoredRows* all = nullptr;
  for (size_t i = 0; i < signature_->inputs().inputs().size(); ++i) {
    const Input* const sent = ColumnOf(rows, i);
    if (sent == nullptr) continue;
    const Column& column = sent->column();
    const StoredValues* const stored = column.values.stored;
    if (stored == nullptr || (all != nullptr && all != &stored->rows())) return nullptr;
    const bool has_lengths = rows_have_one_shape_ && signature_->lists().LengthsOf(i) >= 0;
    if (column.dims[0] != rows.count || (stored->padded() && !has_lengths)) return nullptr;
    all = &stored->rows();
  }
  return all;
}

// Extends the keys by the set of outputs, because a state consists of these outputs.
void Stage::AddOutputs(Rows* rows) const {
  const std::vector<int>& outputs = *rows->outputs;
  std::vector<uint8_t> bytes(sizeof(states::Key));
  const auto* const numbers = reinterpret_cast<const uint8_t*>(outputs.data());
  bytes.insert(bytes.end(), numbers, numbers + outputs.size() * sizeof(int));
  for (states::Key& key : rows->keys) {
    std::memcpy(bytes.data(), &key, sizeof(key));
    key = store_.hash()(bytes.data(), bytes.size());
  }
}

// Makes the keys depend on the longest lists of the rows' requests and on the last delta of the
// tables that the stage reads, so that states computed for other values of these are never found,
// and are eventually evicted. One hash covers both, so that they cannot cancel each other.
void Stage::AddMarks(Rows* rows) const {
  const std::vector<const void*>& tables = signature_->tables();
  const int64_t last_change = tables.empty() ? 0 : tables::ReadsGeneration::LastChangeOf(tables);
  if (last_change == 0 && lengths_.empty()) return;
  absl::InlinedVector<int64_t, 8> covered;
  absl::InlinedVector<states::Key, 1> marks;
  for (int group = 0; group < (lengths_.empty() ? 1 : rows->groups.count()); ++group) {
    covered.assign(1, last_change);
    if (!lengths_.empty()) {
      const absl::Span<const int64_t> longest = rows->groups.longest(group);
      covered.insert(covered.end(), longest.begin(), longest.end());
    }
    marks.push_back(store_.hash()(covered.data(), covered.size() * sizeof(int64_t)));
  }
  for (size_t row = 0; row < rows->keys.size(); ++row) {
    const states::Key& mark = marks[marks.size() == 1 ? 0 : rows->groups.of(row)];
    rows->keys[row].high ^= mark.high;
    rows->keys[row].low ^= mark.low;
  }
}

bool Stage::Find(Rows* rows, size_t* num_found) {
  *num_found = 0;
  if (rows->keys.empty() && !MakeKeys(rows)) return false;
  rows->num_ended = store_.num_ended();
  *num_found = store_.FindAll(rows->keys, &rows->found);
  return true;
}

bool Stage::LookFor(Rows* rows, bool* gain) {
  if (!store_.on() || !store_.reuse().Look()) {
    rows->keys.clear();
    store_.counters().Add(&states::Counters::not_looked, rows->count);
    return true;
  }
  size_t num_found = 0;
  if (!Find(rows, &num_found)) return false;
  const bool good = store_.reuse().good();
  *gain |= num_found > 0 || good;
  if (!good) rows->keys.clear();  // rows without keys are not cached
  return true;
}

bool Stage::MergeRepeated(Rows* rows) {
  const int64_t times = unrepeated_.load(std::memory_order_relaxed);
  const bool look = times < kUnrepeatedRequests || times % kUnrepeatedRequests == 0;
  if (look && rows->keys.empty() && !MakeKeys(rows)) return false;
  const int64_t most = rows->count - rows->count / kFewestRepeated;
  const bool merged =
      look && states::FindDistinctRows(rows->keys, most, &rows->wanted, &rows->merged);
  unrepeated_.store(merged ? 0 : times + 1, std::memory_order_relaxed);
  if (!merged) {
    rows->wanted.clear();
    rows->merged.clear();
  }
  return true;
}

absl::Status Stage::Complete(Rows* rows, std::vector<Tensor>* states) {
  rows->found.resize(rows->count);
  CollectMissing(rows);
  const size_t wanted = rows->wanted.empty() ? rows->count : rows->wanted.size();
  const ObservedStage observed(name_, wanted, wanted - rows->missing.size());
  rows->awaited.clear();
  std::vector<Tensor> made;
  StateStore::Work work;
  if (!rows->missing.empty() && !rows->keys.empty()) {
    store_.Begin(rows->keys, rows->num_ended, &rows->missing, &rows->awaited, &rows->found, &work);
  }
  absl::Status status = ComputeAndKeep(rows, &made);
  work.End();
  if (status.ok() && !rows->awaited.empty()) {
    store_.Await(rows->keys, rows->awaited, &rows->found, work);
    rows->awaited.clear();
    CollectMissing(rows);  // states that the other request failed to cache
    status = ComputeAndKeep(rows, &made);
  }
  if (!status.ok()) return status;
  if (rows->missing.size() == wanted) {
    *states = std::move(made);
    return absl::OkStatus();
  }
  return LayOutStates(layouts_, rows->found, rows->wanted, made, states);
}

void Stage::CollectMissing(Rows* rows) const {
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

absl::Status Stage::ComputeAndKeep(Rows* rows, std::vector<Tensor>* made) {
  made->clear();
  if (rows->missing.empty()) return absl::OkStatus();
  absl::Status status = Compute(rows, made);
  if (status.ok()) Keep(*made, rows);
  return status;
}

absl::Status Stage::Compute(Rows* rows, std::vector<Tensor>* made) {
  if (!lengths_.empty()) return ComputeGroups(rows, made);
  RunResult result;
  absl::Status status = RunRows(rows->missing, rows, &result);
  if (status.ok()) *made = std::move(result.tensors);
  return status;
}

// Computes the missing rows in one run per group, which includes the group's longest lists.
absl::Status Stage::ComputeGroups(Rows* rows, std::vector<Tensor>* made) {
  const auto num_missing = static_cast<int64_t>(rows->missing.size());
  std::vector<int64_t>& running = rows->running;
  if (!rows->grouped) {
    RunResult result;
    absl::Status status = RunRows(rows->missing, rows, &result);  // reports unreadable values
    return status.ok() ? absl::FailedPreconditionError("lists of too many lengths") : status;
  }
  for (int group = 0; group < rows->groups.count(); ++group) {
    running.clear();
    for (const int64_t row : rows->missing) {
      if (rows->groups.of(row) == group) running.push_back(row);
    }
    if (running.empty()) continue;
    rows->groups.AddLongest(group, &running);
    if (static_cast<int64_t>(running.size()) < rows->count && !rows->hashed) {
      // Making the keys decodes the columns; RunRows() copies the rows from there.
      if (!MakeKeys(rows)) return absl::FailedPreconditionError("a list's values cannot be read");
      rows->keys.clear();
    }
    RunResult result;
    if (absl::Status status = RunRows(running, rows, &result); !status.ok()) return status;
    if (running == rows->missing) {
      *made = std::move(result.tensors);
      return absl::OkStatus();
    }
    for (size_t k = 0; k < result.tensors.size(); ++k) {
      const Tensor& tensor = result.tensors[k];
      absl::Status status = absl::OkStatus();
      if (made->size() == k) status = MakeRows(tensor, num_missing, &made->emplace_back());
      if (status.ok() && !HaveRowsOfOneShape(tensor, (*made)[k])) {
        status = absl::FailedPreconditionError("states of different shapes in one run");
      }
      if (!status.ok()) return status;
      size_t next = 0;
      for (int64_t i = 0; i < num_missing; ++i) {
        if (rows->groups.of(rows->missing[i]) != group) continue;
        while (running[next] != rows->missing[i]) ++next;
        CopyRow(tensor, static_cast<int64_t>(next), i, &(*made)[k]);
      }
    }
  }
  return absl::OkStatus();
}

// Runs the signature on these rows, which are ascending.
absl::Status Stage::RunRows(const std::vector<int64_t>& running, Rows* rows, RunResult* result) {
  const auto num_running = static_cast<int64_t>(running.size());
  const bool all = num_running == rows->count;
  rows->places.assign(all ? 0 : rows->count, -1);
  if (!all) {
    for (int64_t i = 0; i < num_running; ++i) rows->places[running[i]] = i;
  }
  const SignatureInputs& inputs = signature_->inputs();
  absl::Status status = absl::OkStatus();
  int64_t elements = 0;
  rows->feeds.resize(inputs.inputs().size());
  for (size_t i = 0; i < rows->feeds.size() && status.ok(); ++i) {
    const Input* const column = ColumnOf(*rows, i);
    if (column == nullptr && !inputs.inputs()[i].has_default) {
      return absl::FailedPreconditionError(absl::StrCat("input \"", inputs.inputs()[i].alias,
                                                        "\" of stage \"", name_,
                                                        "\" was left out and has no default"));
    }
    const int64_t wanted = inputs.inputs()[i].batched() ? num_running : SignatureInputs::kAsSent;
    const auto build = [&](const ColumnSource* source) {
      return inputs.BuildRows(static_cast<int>(i), source, wanted, &rows->feeds[i]);
    };
    if (!all && column != nullptr && rows->columns_in_keys[i] >= 0) {
      const PickedInput picked(*column, rows->row_keys, rows->columns_in_keys[i], running,
                               rows->places);
      status = build(&picked);
    } else {
      status = build(column);
    }
    elements += rows->feeds[i].NumElements();
  }
  const std::vector<int>& outputs =
      rows->outputs == nullptr ? signature_->all_outputs() : *rows->outputs;
  if (status.ok()) status = signature_->RunFeeds(rows->feeds, outputs, result);
  if (status.ok()) status = CheckRows(result->aliases, result->tensors, num_running);
  if (num_running > kMostKeptRows || elements > kMostKeptElements) rows->feeds.clear();
  return status;
}

void Stage::End(Rows* rows) {
  constexpr size_t kBytesOfARow = 16 * sizeof(int64_t);
  const size_t bytes = rows->row_keys.MemoryBytes() + rows->count * kBytesOfARow +
                       rows->merged.capacity() * sizeof(int64_t);
  if (bytes > kMostKeptBytes) {
    *rows = Rows();
  } else {
    rows->columns = {};
    rows->found.clear();
  }
}

void Stage::Keep(const std::vector<Tensor>& made, Rows* rows) {
  const std::optional<uint32_t> layout =
      rows->keys.empty() ? std::nullopt : layouts_.NumberOf(made);
  if (!layout) {
    store_.counters().Add(&states::Counters::computed, static_cast<int64_t>(rows->missing.size()));
    return;
  }
  for (size_t i = 0; i < rows->missing.size(); ++i) {
    const int64_t row = rows->missing[i];
    StateRef state = MakeState(layouts_.at(*layout), *layout, made, static_cast<int64_t>(i));
    // With awaited rows, the states must be laid out from `found`, because `made` lacks the awaited
    // ones.
    if (!rows->awaited.empty()) rows->found[row] = state;
    store_.Insert(rows->keys[row], std::move(state));
  }
}

}  // namespace colcast::engine
