#include "server/engine/program/whole_program.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/program/stage.h"
#include "server/engine/rows.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// Frees large tensors. Keeps small ones for the thread's next request, because allocating them
// costs more than filling them.
void DropLarge(std::vector<Tensor>* feeds) {
  constexpr int64_t kMaxKeptBytes = 4096;
  for (Tensor& feed : *feeds) {
    const int64_t least = feed.NumElements() * ElementBytes(feed.dtype());
    if (least > kMaxKeptBytes || feed.TotalBytes() > kMaxKeptBytes) feed = Tensor();
  }
}

// Sets `*feeds` to one tensor per input: the sent column or, if it is null, the default. If the
// input takes rows, repeats a single row `rows` times, unless `rows` is kAsSent. Reuses the tensors
// in `*feeds`.
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

class WholeProgram final : public Program {
 public:
  explicit WholeProgram(const Signature* signature) : signature_(signature) {}

  std::string_view name() const override { return "whole"; }
  bool Accepts(const Batch& batch) const override {
    return (batch.form == Batch::Form::kRows && batch.user_states == nullptr) ||
           batch.form == Batch::Form::kAsSent;
  }
  std::vector<int> own_lengths() const override { return signature_->lists().own_lengths(); }
  bool has_independent_rows() const override { return signature_->record().independent; }

  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override {
    const absl::Status status = RunColumns(*signature_, batch, result);
    if (status.ok()) return true;
    if (batch.form != Batch::Form::kAsSent || batch.unequal_rows.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; ", batch.unequal_rows.message()));
  }

 private:
  const Signature* const signature_;
};

class GatheredProgram final : public Program {
 public:
  GatheredProgram(const Signature* columnar, const Domains* domains, AnswerMode mode)
      : columnar_(columnar), domains_(domains), mode_(mode) {}

  std::string_view name() const override { return "gathered"; }
  bool Accepts(const Batch& batch) const override {
    return batch.form == Batch::Form::kIndexed && batch.user_states == nullptr;
  }
  std::vector<int> own_lengths() const override { return columnar_->lists().own_lengths(); }
  bool has_independent_rows() const override { return columnar_->record().independent; }

  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override {
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

 private:
  // A single user's candidates always run together.
  bool MayRunAtOnce(const Batch& batch) const {
    return mode_ == AnswerMode::kOneRun || !batch.has_index(Batch::kUser) || batch.pads_together ||
           (has_independent_rows() && domains_->HaveOneLength(batch, own_lengths()));
  }

  absl::Status RunRowsOf(const Batch& batch, absl::Span<const int64_t> candidates,
                         const std::vector<Tensor>& sent, RunResult* result) const {
    std::vector<Tensor> feeds = sent;
    GatheredRows gathered(columnar_->inputs().limits().max_expanded_bytes);
    for (size_t i = 0; i < feeds.size(); ++i) {
      absl::Status status =
          GatherFeed(batch, static_cast<int>(i), candidates, &gathered, &feeds[i]);
      if (!status.ok()) return status;
    }
    return columnar_->RunFeeds(feeds, *batch.outputs, result);
  }

  // Replaces `*feed`, which holds the input's column, with one row for each of these candidates.
  absl::Status GatherFeed(const Batch& batch, int input, absl::Span<const int64_t> candidates,
                          GatheredRows* gathered, Tensor* feed) const {
    if (!columnar_->inputs().inputs()[input].batched() || feed->dims() == 0) {
      return absl::OkStatus();
    }
    const int domain = domains_->domain_of(input);
    std::vector<int64_t> rows(candidates.begin(), candidates.end());
    if (batch.has_index(domain)) {
      const absl::Span<const int64_t> index = RowsIn(batch.domains[domain].index);
      for (int64_t& row : rows) row = index[row];
    } else if (feed->dim_size(0) != batch.candidates) {
      std::fill(rows.begin(), rows.end(), 0);  // the only user's row
    } else if (static_cast<int64_t>(rows.size()) == batch.candidates) {
      return absl::OkStatus();
    }
    return gathered->Gather(rows, feed);
  }

  const Signature* const columnar_;
  const Domains* const domains_;
  const AnswerMode mode_;
};

class RowsProgram final : public Program {
 public:
  RowsProgram(const Signature* signature, states::StateCache* memory)
      : stage_(signature, "item", {}, signature->traits().takes_rows_or_settings ? memory : nullptr,
               kWindowRows) {}

  std::string_view name() const override { return "rows"; }
  bool Accepts(const Batch& batch) const override {
    return batch.form == Batch::Form::kRows && batch.candidates > 0 && stage_.store().on() &&
           stage_.signature().RowsHaveOneShape(*batch.outputs);
  }
  std::vector<int> own_lengths() const override { return stage_.lengths(); }
  bool has_independent_rows() const override { return true; }
  std::vector<states::StoreStats> stats() const override { return {stage_.stats()}; }

  absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) override {
    thread_local Stage::Rows rows;
    stage_.Begin(batch.candidates, batch.columns, &rows);
    rows.outputs = batch.outputs;
    // Treats all rows as one request's: only requests with equal longest lists are joined.
    stage_.SetReaders({}, &rows);
    bool gain = false;
    std::vector<Tensor> tensors;
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

 private:
  Stage stage_;
};

}  // namespace

std::unique_ptr<Program> MakeWholeProgram(const Signature* signature) {
  return std::make_unique<WholeProgram>(signature);
}

std::unique_ptr<Program> MakeGatheredProgram(const Signature* columnar, const Domains* domains,
                                             AnswerMode mode) {
  return std::make_unique<GatheredProgram>(columnar, domains, mode);
}

std::unique_ptr<Program> MakeRowsProgram(const Signature* signature, states::StateCache* memory) {
  return std::make_unique<RowsProgram>(signature, memory);
}

std::unique_ptr<ExactProgram> ExactProgram::Create(const Signature& signature,
                                                   const std::string& name,
                                                   const Signature& exact) {
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  if (exact.output_aliases() != signature.output_aliases() ||
      exact.inputs().inputs().size() != inputs.size()) {
    return nullptr;
  }
  std::vector<size_t> once;
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
    if (one_row) once.push_back(i);
  }
  if (once.empty()) return nullptr;
  return std::unique_ptr<ExactProgram>(new ExactProgram(&exact, std::move(once)));
}

absl::StatusOr<bool> ExactProgram::Run(const Batch& batch, RunResult* result) {
  if (absl::Status status = RunColumns(*exact_, batch, result); !status.ok()) return status;
  return true;
}

bool ExactProgram::Plan(ReceivedRequest* received) const {
  if (received->has_unknown || received->most_rows == 1) return false;
  for (const size_t input : once_) {
    const Input* const column = received->columns[input];
    if (column != nullptr && (column->dims().empty() || column->dims()[0] != 1)) return false;
  }
  return received->Plan(exact_->inputs()).ok() && received->rows() > 1;
}

}  // namespace colcast::engine
