#include "server/engine/program/whole_program.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rows.h"
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

// After each window of this many rows, states::ReuseEstimator judges whether caching pays.
constexpr int64_t kWindowRows = 512;

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

absl::StatusOr<bool> GatheredProgram::Run(const Batch& batch, RunResult* result) {
  if (absl::Status status = CheckBytes(batch); !status.ok()) return status;
  std::vector<Tensor> sent(batch.columns.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    absl::Status status = domains_->BuildFeed(batch, static_cast<int>(i), &sent[i]);
    if (!status.ok()) return status;
  }
  absl::Status status;
  if (MayRunAtOnce(batch)) {
    std::vector<int64_t> all(batch.candidates);
    std::iota(all.begin(), all.end(), 0);
    status = RunRowsOf(batch, all, sent, result);
    if (status.ok() && mode_ == AnswerMode::kRequestPerUser) {
      status = CheckRows(result->aliases, result->tensors, batch.candidates);
    }
  } else {
    const auto run = [&](int64_t, absl::Span<const int64_t> candidates, RunResult* of_user) {
      return RunRowsOf(batch, candidates, sent, of_user);
    };
    const Batch::Domain& users = batch.domains[Batch::kUser];
    status = RunByUser(RowsIn(users.index), users.rows, run, result);
  }
  if (!status.ok()) return status;
  return true;
}

// A single user's candidates always run together.
bool GatheredProgram::MayRunAtOnce(const Batch& batch) const {
  return mode_ == AnswerMode::kOneRun || !batch.has_index(Batch::kUser) || batch.pads_together ||
         (columnar_->record().independent && domains_->HaveOneLength(batch, own_lengths()));
}

absl::Status GatheredProgram::RunRowsOf(const Batch& batch, absl::Span<const int64_t> candidates,
                                        const std::vector<Tensor>& sent, RunResult* result) const {
  std::vector<Tensor> feeds = sent;
  GatheredRows gathered(columnar_->inputs().limits().max_expanded_bytes);
  for (size_t i = 0; i < feeds.size(); ++i) {
    absl::Status status = GatherFeed(batch, static_cast<int>(i), candidates, &gathered, &feeds[i]);
    if (!status.ok()) return status;
  }
  return columnar_->RunFeeds(feeds, *batch.outputs, result);
}

// Replaces `*feed`, which holds the input's column, with one row for each of these candidates.
absl::Status GatheredProgram::GatherFeed(const Batch& batch, int input,
                                         absl::Span<const int64_t> candidates,
                                         GatheredRows* gathered, Tensor* feed) const {
  if (!columnar_->inputs().inputs()[input].batched() || feed->dims() == 0) return absl::OkStatus();
  const int domain = domains_->domain_of(input);
  std::vector<int64_t> rows(candidates.begin(), candidates.end());
  if (batch.has_index(domain)) {
    const absl::Span<const int64_t> index = RowsIn(batch.domains[domain].index);
    for (int64_t& row : rows) row = index[row];
  } else if (feed->dim_size(0) != batch.candidates) {
    std::fill(rows.begin(), rows.end(), 0);  // row 0, of the only user
  } else if (static_cast<int64_t>(rows.size()) == batch.candidates) {
    return absl::OkStatus();
  }
  return gathered->Gather(rows, feed);
}

absl::Status GatheredProgram::CheckBytes(const Batch& batch) const {
  double bytes = 0;
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    const int domain = domains_->domain_of(i);
    if (batch.columns[i] == nullptr || !batch.has_index(domain)) continue;
    const int64_t rows = std::max<int64_t>(1, batch.domains[domain].rows);
    bytes += batch.columns[i]->ExtraBytes((batch.candidates + rows - 1) / rows);
  }
  const auto most = static_cast<double>(columnar_->inputs().limits().max_expanded_bytes);
  return bytes <= most ? absl::OkStatus()
                       : TooMuchGathered(batch.candidates, bytes, " more than were sent", most);
}

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
