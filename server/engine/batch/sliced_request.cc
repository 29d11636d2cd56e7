#include "server/engine/batch/sliced_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/batch/stacked_batch.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/row_blocks.h"
#include "server/engine/rows.h"
#include "server/engine/signature.h"
#include "server/engine/status.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// Whether slices may share rows of a domain, which each slice would then compute. User states do
// not count: they are computed once for all slices.
bool SharesRows(const Batch& batch) {
  for (size_t domain = Batch::kUser + 1; domain < batch.domains.size(); ++domain) {
    if (batch.domains[domain].has_index()) return true;
  }
  return false;
}

// If a domain has more rows than there are candidates, a slice's cost is not proportional to its
// candidates.
bool HasMoreRowsThanCandidates(const Batch& batch) {
  return std::any_of(
      batch.domains.begin(), batch.domains.end(),
      [&batch](const Batch::Domain& domain) { return domain.rows > batch.candidates; });
}

// Entries [first, first + count) of an index, then the entries `more`.
Tensor IndexSlice(const Tensor& index, int64_t first, int64_t count,
                  absl::Span<const int64_t> more) {
  const auto all = count + static_cast<int64_t>(more.size());
  Tensor slice(tensorflow::DT_INT64, tensorflow::TensorShape({all}));
  auto* const out = static_cast<int64_t*>(slice.data());
  std::copy_n(RowsIn(index).begin() + first, count, out);
  for (size_t i = 0; i < more.size(); ++i) out[count + i] = RowsIn(index)[more[i]];
  return slice;
}

}  // namespace

std::unique_ptr<Slices> SlicedRequest::Create(const RequestPlan& plan, RunExamples examples) {
  const Batch& batch = plan.batch;
  if (batch.candidates < 2 || SharesRows(batch) || HasMoreRowsThanCandidates(batch)) return nullptr;
  std::unique_ptr<SlicedRequest> made(new SlicedRequest(plan, std::move(examples)));
  return made->ReadLists() && made->LayOut().ok() ? std::move(made) : nullptr;
}

// Returns false if lists differ in length and slices cannot have the request's longest ones.
bool SlicedRequest::ReadLists() {
  for (const int input : programs_->own_lengths()) {
    const Input* const column = batch_.columns[input];
    const bool of_user = programs_->domains().domain_of(input) == Batch::kUser;
    // The user's states are computed once, before the request is split.
    if (column == nullptr || (of_user && programs_->stages() != nullptr)) continue;
    List list;
    if (!ReadLengths(*column, &list.lengths)) return false;
    const auto [least, most] = std::minmax_element(list.lengths.begin(), list.lengths.end());
    if (list.lengths.empty() || *least == *most) continue;
    if (!plan_.rules->allowed_batch_sizes.empty() ||
        static_cast<int64_t>(list.lengths.size()) != num_rows()) {
      return false;
    }
    list.longest_rows.assign(num_users(), -1);
    for (int64_t row = 0; row < num_rows(); ++row) {
      int64_t& longest = list.longest_rows[UserOf(row)];
      if (longest < 0 || list.lengths[row] > list.lengths[longest]) longest = row;
    }
    lists_.push_back(std::move(list));
  }
  return true;
}

int64_t SlicedRequest::UserOf(int64_t row) const {
  return batch_.has_index(Batch::kUser) ? RowsIn(batch_.domains[Batch::kUser].index)[row] : 0;
}

// For the users of rows [first, first + rows): rows with their longest lists that these rows lack.
std::vector<int64_t> SlicedRequest::LongestBeside(int64_t first, int64_t rows) const {
  std::vector<int64_t> beside;
  for (const List& list : lists_) {
    std::vector<bool> is_here(num_users(), false), has_longest(num_users(), false);
    const auto note = [&](int64_t row) {
      const int64_t user = UserOf(row);
      is_here[user] = true;
      if (list.lengths[row] == list.lengths[list.longest_rows[user]]) has_longest[user] = true;
    };
    for (int64_t row = first; row < first + rows; ++row) note(row);
    for (const int64_t row : beside) note(row);
    for (size_t user = 0; user < is_here.size(); ++user) {
      if (is_here[user] && !has_longest[user]) beside.push_back(list.longest_rows[user]);
    }
  }
  return beside;
}

absl::Status SlicedRequest::LayOut() {
  if (programs_->stages() != nullptr) {
    absl::Status status = programs_->stages()->UserStates(batch_, &user_states_);
    if (!status.ok()) return status;
    batch_.user_states = &user_states_;
  }
  if (run_examples_ != nullptr && batch_.columns[0] != nullptr &&
      !AddStrings(*batch_.columns[0], num_rows(), &examples_)) {
    examples_.clear();
  }
  for (size_t i = 0; i < batch_.columns.size(); ++i) {
    if (absl::Status status = LayOutColumn(i); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Makes a column's rows contiguous in memory, as splitting it requires.
absl::Status SlicedRequest::LayOutColumn(size_t input) {
  const Input* const column = batch_.columns[input];
  if (column == nullptr || column->dims().empty() || column->dims()[0] <= 1 ||
      batch_.has_index(programs_->domains().domain_of(input)) || IsLaidOut(*column)) {
    return absl::OkStatus();
  }
  Tensor rows;
  absl::Status status = StackRows({AllRows(*column, column->dims()[0])}, PadWith::kZeros, &rows);
  if (status.ok()) {
    columns_[input] = &laid_out_.emplace_back(column->name(), std::move(rows));
  }
  return status;
}

int64_t SlicedRequest::rows_left() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_rows() - taken_;
}

int SlicedRequest::Take(int64_t rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t left = num_rows() - taken_;
  if (left == 0) return -1;
  rows = std::clamp<int64_t>(rows, 1, left);
  int64_t added = 0;
  if (plan_.rules->allowed_batch_sizes.empty()) {
    // Slices have equal sizes, because the request waits for its slowest slice.
    const int64_t count = (left + rows - 1) / rows;
    rows = (left + count - 1) / count;
  } else {
    rows = std::min(rows + RowsToAdd(*plan_.rules, rows), left);
    added = std::min(RowsToAdd(*plan_.rules, rows), num_rows() - rows);
  }
  Slice& slice = slices_.emplace_back();
  slice.rows = rows;
  slice.run_rows = rows + added;
  slice.skipped = std::max<int64_t>(0, taken_ + slice.run_rows - num_rows());
  slice.first = taken_ - slice.skipped;
  slice.longest = LongestBeside(slice.first, slice.run_rows);
  taken_ += rows;
  return static_cast<int>(slices_.size()) - 1;
}

SlicedRequest::Slice& SlicedRequest::At(int slice) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return slices_[slice];
}

absl::Status SlicedRequest::SetBatch(const Slice& slice, SliceBatch* made) const {
  made->batch = batch_;
  made->columns = columns_;
  made->batch.columns = made->columns;
  made->batch.candidates = slice.run_rows + static_cast<int64_t>(slice.longest.size());
  for (Batch::Domain& domain : made->batch.domains) {
    if (domain.has_index()) {
      domain.index = IndexSlice(domain.index, slice.first, slice.run_rows, slice.longest);
    } else if (domain.rows == num_rows()) {
      domain.rows = made->batch.candidates;
    }
  }
  for (size_t i = 0; i < batch_.columns.size(); ++i) {
    if (absl::Status status = SliceColumn(slice, i, made); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SlicedRequest::SliceColumn(const Slice& slice, size_t input, SliceBatch* made) const {
  const Input* const column = batch_.columns[input];
  if (column == nullptr || column->dims().empty() || column->dims()[0] <= 1 ||
      batch_.has_index(programs_->domains().domain_of(input)) || column->dims()[0] != num_rows() ||
      !programs_->signature().inputs().inputs()[input].batched()) {
    return absl::OkStatus();
  }
  std::vector<RowBlock> blocks = {{column, slice.first, slice.run_rows}};
  for (const int64_t row : slice.longest) blocks.push_back({column, row, 1});
  Tensor rows;
  absl::Status status = StackRows(blocks, PadWith::kZeros, &rows);
  if (status.ok()) {
    made->columns[input] = &made->inputs.emplace_back(column->name(), std::move(rows));
  }
  return status;
}

bool SlicedRequest::AnswerExamples(const Slice& slice, RunResult* result) const {
  if (examples_.empty()) return false;
  DecodedRequest examples;
  examples.model_spec.signature_name = plan_.request->model_spec.signature_name;
  examples.output_filter = plan_.request->output_filter;
  AddExamples(programs_->signature(),
              absl::MakeConstSpan(examples_).subspan(slice.first, slice.run_rows), &examples);
  return run_examples_(examples, result);
}

absl::Status SlicedRequest::RunSlice(const Slice& slice, RunResult* result) const {
  if (AnswerExamples(slice, result)) return absl::OkStatus();
  SliceBatch made;
  absl::Status status = SetBatch(slice, &made);
  return status.ok() ? programs_->Run(made.batch, result) : status;
}

void SlicedRequest::Run(int number) {
  const tables::ReadsGeneration reads(tables_);
  Slice& slice = At(number);
  slice.status = RunSlice(slice, &slice.result);
}

Status SlicedRequest::Join(std::unique_ptr<Outputs>* outputs) {
  RunResult result;
  if (absl::Status status = JoinTensors(&result); !status.ok()) return FromAbsl(status);
  result.expansion = plan_.expansion;
  result.expansion.transcoded = slices_[0].result.expansion.transcoded;
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

absl::Status SlicedRequest::JoinTensors(RunResult* result) const {
  for (const Slice& slice : slices_) {
    if (!slice.status.ok()) return slice.status;
  }
  for (const Slice& slice : slices_) {
    const auto run_rows = slice.run_rows + static_cast<int64_t>(slice.longest.size());
    absl::Status status = CheckRows(slice.result.aliases, slice.result.tensors, run_rows);
    if (status.ok()) continue;
    programs_->NeverJoin();
    return status;
  }
  const RunResult& first = slices_[0].result;
  result->aliases = first.aliases;
  for (size_t k = 0; k < first.tensors.size(); ++k) {
    const Tensor& like = first.tensors[k];
    Tensor& all = result->tensors.emplace_back();
    int64_t next = 0;
    for (const Slice& slice : slices_) {
      const Tensor& tensor = slice.result.tensors[k];
      if (!HaveRowsOfOneShape(tensor, like)) {
        programs_->NeverJoin();
        return absl::FailedPreconditionError(absl::StrCat(
            "output \"", first.aliases[k], "\" has rows of different shapes in different slices"));
      }
      if (next == 0) {
        if (absl::Status status = MakeRows(like, num_rows(), &all); !status.ok()) return status;
      }
      for (int64_t row = 0; row < slice.rows; ++row) {
        CopyRow(tensor, slice.skipped + row, next++, &all);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
