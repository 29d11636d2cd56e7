#include "server/engine/program/whole_program.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {

namespace {

using tensorflow::Tensor;

// Keeps small tensors for the thread's next request, because allocating them costs more than
// filling them.
void DropLarge(std::vector<Tensor>* feeds) {
  constexpr int64_t kMaxKeptBytes = 4096;
  for (Tensor& feed : *feeds) {
    const int64_t least = feed.NumElements() * ElementBytes(feed.dtype());
    if (least > kMaxKeptBytes || feed.TotalBytes() > kMaxKeptBytes) feed = Tensor();
  }
}

// Sets `*feeds` to one tensor per input: the column that was sent or, if null, the default; a
// single row is repeated to `rows` if the input takes rows, unless `rows` is kAsSent. Reuses the
// tensors in `*feeds`.
absl::Status BuildFeeds(const SignatureInputs& inputs, absl::Span<const Input* const> columns,
                        int64_t rows, std::vector<Tensor>* feeds) {
  const absl::Span<const DeclaredInput> declared = inputs.inputs();
  feeds->resize(declared.size());
  for (size_t i = 0; i < declared.size(); ++i) {
    const int64_t own_rows = declared[i].batched() ? rows : SignatureInputs::kAsSent;
    absl::Status status = inputs.BuildRows(static_cast<int>(i), columns[i], own_rows, &(*feeds)[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunColumns(const Signature& signature, const Batch& batch, RunResult* result) {
  thread_local std::vector<Tensor> feeds;
  const int64_t rows =
      batch.form == Batch::Form::kAsSent ? SignatureInputs::kAsSent : batch.candidates;
  absl::Status status = BuildFeeds(signature.inputs(), batch.columns, rows, &feeds);
  if (status.ok()) status = signature.RunFeeds(feeds, *batch.outputs, result);
  DropLarge(&feeds);
  return status;
}

}  // namespace

absl::StatusOr<bool> WholeProgram::Run(const Batch& batch, RunResult* result) {
  const absl::Status status = RunColumns(*signature_, batch, result);
  if (status.ok()) return true;
  if (batch.form != Batch::Form::kAsSent || batch.unequal_rows.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; ", batch.unequal_rows.message()));
}

std::unique_ptr<ExactProgram> ExactProgram::Create(const Signature& signature,
                                                   const std::string& name,
                                                   const Signature& exact) {
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  if (exact.output_aliases() != signature.output_aliases() ||
      exact.inputs().inputs().size() != inputs.size()) {
    return nullptr;
  }
  std::vector<Takes> takes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeclaredInput& theirs = exact.inputs().inputs()[i];
    DeclaredInput expected = inputs[i];
    const bool one_row = expected.batched() && !theirs.batched();
    if (one_row && !expected.dims.empty()) expected.dims[0] = 1;
    if (!absl::StartsWith(exact.inputs().feed_names()[i], name + "/inputs/") ||
        theirs.alias != expected.alias || theirs.dtype != expected.dtype ||
        theirs.dims != expected.dims) {
      return nullptr;
    }
    takes.push_back(one_row ? Takes::kOneRow : theirs.batched() ? Takes::kRows : Takes::kAsWhole);
  }
  if (std::find(takes.begin(), takes.end(), Takes::kOneRow) == takes.end()) return nullptr;
  return std::unique_ptr<ExactProgram>(new ExactProgram(&exact, std::move(takes)));
}

absl::StatusOr<bool> ExactProgram::Run(const Batch& batch, RunResult* result) {
  if (absl::Status status = RunColumns(*exact_, batch, result); !status.ok()) return status;
  return true;
}

bool ExactProgram::Plan(ReceivedRequest* received) const {
  return Fits(*received) && received->Plan(exact_->inputs()).ok();
}

bool ExactProgram::Fits(const ReceivedRequest& received) const {
  if (received.has_unknown || received.most_rows == 1) return false;
  int64_t rows = 1;
  for (size_t i = 0; i < received.columns.size(); ++i) {
    const Input* const input = received.columns[i];
    if (input == nullptr || takes_[i] == Takes::kAsWhole) continue;
    const absl::Span<const int64_t> dims = input->dims();
    if (dims.empty() || (takes_[i] == Takes::kOneRow && dims[0] != 1)) return false;
    rows = std::max(rows, dims[0]);
  }
  return rows > 1;
}

}  // namespace colcast::engine
