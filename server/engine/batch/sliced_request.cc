#include "server/engine/batch/sliced_request.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/batch/joined_requests.h"
#include "server/engine/batch/stacked_batch.h"
#include "server/engine/examples/transcoding.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/row_blocks.h"
#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/tables/overlay.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// Whether slices may share rows of a domain, so that each slice would compute them. Ignores users,
// whose states are computed once for all slices.
bool SharesRows(const Batch& batch) {
  for (size_t domain = Batch::kUser + 1; domain < batch.domains.size(); ++domain) {
    if (batch.domains[domain].has_index()) return true;
  }
  return false;
}

// Whether a domain has more rows than there are candidates: a slice's cost is then not proportional
// to its candidates.
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

// Columns of one row go into every slice; all others are decoded once and split. If the signature
// has stages, the user stage runs once, and all slices get its states.
class SlicedRequest final : public Slices {
 public:
  explicit SlicedRequest(const RequestPlan& plan)
      : plan_(plan),
        programs_(plan.programs),
        batch_(plan.batch),
        columns_(plan.batch.columns.begin(), plan.batch.columns.end()) {
    batch_.columns = columns_;
  }

  // Returns false if lengths cannot be read, or differ and slices cannot include the longest lists.
  bool ReadLists() {
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

  absl::Status LayOut() {
    if (programs_->stages() != nullptr) {
      absl::Status status = programs_->stages()->UserStates(batch_, &user_states_);
      if (!status.ok()) return status;
      batch_.user_states = &user_states_;
    }
    if (plan_.examples != nullptr && batch_.columns[0] != nullptr &&
        !AddStrings(*batch_.columns[0], num_rows(), &examples_)) {
      examples_.clear();
    }
    for (size_t i = 0; i < batch_.columns.size(); ++i) {
      if (absl::Status status = LayOutColumn(i); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  int64_t rows_left() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_rows() - taken_;
  }

  int Take(int64_t rows) override {
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

  int64_t rows(int slice) const override { return At(slice).run_rows; }

  void Run(int number) override {
    const tables::ReadsGeneration reads(tables_);
    Slice& slice = At(number);
    slice.status = RunSlice(slice, &slice.result);
  }

  Status Join(std::unique_ptr<Outputs>* outputs) override {
    RunResult result;
    if (absl::Status status = JoinTensors(&result); !status.ok()) return FromAbsl(status);
    result.expansion = plan_.expansion;
    result.expansion.transcoded = slices_[0].result.expansion.transcoded;
    *outputs = std::make_unique<TensorOutputs>(std::move(result));
    return OkStatus();
  }

 private:
  struct Slice {
    int64_t first = 0;  // the first row that runs
    int64_t rows = 0;   // rows that the slice answers
    // Rows that run, including the neighboring ones that fill the slice up to an allowed size.
    int64_t run_rows = 0;
    int64_t skipped = 0;  // how many of run_rows precede the slice's own rows
    // Additional rows that run because they have the request's longest lists.
    std::vector<int64_t> longest;
    absl::Status status;
    RunResult result;
  };

  // The lengths of a list, one per row, and for each user a row with the longest list of the user's
  // candidates.
  struct List {
    std::vector<int64_t> lengths;
    std::vector<int64_t> longest_rows;
  };

  // The batch of a slice, and the inputs to which it points.
  struct SliceBatch {
    Batch batch;
    std::deque<TensorInput> inputs;
    std::vector<const Input*> columns;
  };

  int64_t UserOf(int64_t row) const {
    return batch_.has_index(Batch::kUser) ? RowsIn(batch_.domains[Batch::kUser].index)[row] : 0;
  }

  // The rows to run with rows [first, first + rows), so that for each list and each of their users
  // one row has the user's longest list.
  std::vector<int64_t> LongestBeside(int64_t first, int64_t rows) const {
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

  // Whether each slice has its own rows of the input's column.
  bool IsSplit(size_t input) const {
    const DeclaredInput& declared = programs_->signature().inputs().inputs()[input];
    return HasRows(declared, batch_.columns[input], num_rows()) &&
           !batch_.has_index(programs_->domains().domain_of(input));
  }

  // Makes a column's rows contiguous in memory, as splitting it requires.
  absl::Status LayOutColumn(size_t input) {
    const Input* const column = batch_.columns[input];
    if (!IsSplit(input) || IsLaidOut(*column)) return absl::OkStatus();
    Tensor rows;
    absl::Status status = StackRows({AllRows(*column, num_rows())}, PadWith::kZeros, &rows);
    if (status.ok()) columns_[input] = &laid_out_.emplace_back(column->name(), std::move(rows));
    return status;
  }

  Slice& At(int slice) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return slices_[slice];
  }

  absl::Status SetBatch(const Slice& slice, SliceBatch* made) const {
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

  absl::Status SliceColumn(const Slice& slice, size_t input, SliceBatch* made) const {
    if (!IsSplit(input)) return absl::OkStatus();
    const Input* const column = batch_.columns[input];
    std::vector<RowBlock> blocks = {{column, slice.first, slice.run_rows}};
    for (const int64_t row : slice.longest) blocks.push_back({column, row, 1});
    Tensor rows;
    absl::Status status = StackRows(blocks, PadWith::kZeros, &rows);
    if (status.ok()) {
      made->columns[input] = &made->inputs.emplace_back(column->name(), std::move(rows));
    }
    return status;
  }

  bool AnswerExamples(const Slice& slice, RunResult* result) const {
    if (examples_.empty()) return false;
    DecodedRequest examples;
    AddExamples(plan_, absl::MakeConstSpan(examples_).subspan(slice.first, slice.run_rows),
                &examples);
    return Transcoding::Answer(*plan_.examples, examples, result);
  }

  absl::Status RunSlice(const Slice& slice, RunResult* result) const {
    if (AnswerExamples(slice, result)) return absl::OkStatus();
    SliceBatch made;
    absl::Status status = SetBatch(slice, &made);
    return status.ok() ? programs_->Run(made.batch, result) : status;
  }

  absl::Status JoinTensors(RunResult* result) const {
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
          return absl::FailedPreconditionError(
              absl::StrCat("output \"", first.aliases[k],
                           "\" has rows of different shapes in different slices"));
        }
        if (next == 0) {
          if (absl::Status status = MakeRows(like, num_rows(), &all); !status.ok()) return status;
        }
        const int64_t width = RowElements(like);
        CopyElements(tensor, slice.skipped * width, slice.rows * width, next * width, &all);
        next += slice.rows;
      }
    }
    return absl::OkStatus();
  }

  int64_t num_rows() const { return batch_.candidates; }
  int64_t num_users() const {
    return batch_.has_index(Batch::kUser) ? batch_.domains[Batch::kUser].rows : 1;
  }

  const RequestPlan& plan_;
  const Programs* const programs_;
  const tables::GenerationPtr tables_ = tables::ReadsGeneration::Here();  // read by all slices
  Batch batch_;  // all candidates; columns to be split are laid out row by row
  std::vector<const Input*> columns_;  // of `batch_`
  std::deque<TensorInput> laid_out_;
  std::vector<Tensor> user_states_;
  std::vector<List> lists_;  // lists that differ in length and whose longest affects results
  std::vector<Bytes> examples_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;                 // rows assigned to slices so far
  mutable std::deque<Slice> slices_;  // a deque, so that references to slices stay valid
};

}  // namespace

std::unique_ptr<Slices> SliceRequest(const RequestPlan& plan) {
  const Batch& batch = plan.batch;
  if (batch.candidates < 2 || SharesRows(batch) || HasMoreRowsThanCandidates(batch)) return nullptr;
  auto made = std::make_unique<SlicedRequest>(plan);
  if (!made->ReadLists() || !made->LayOut().ok()) return nullptr;
  return made;
}

}  // namespace colcast::engine
