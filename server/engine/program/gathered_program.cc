#include "server/engine/program/gathered_program.h"

#include <algorithm>
#include <numeric>

#include "server/engine/rows.h"

namespace colcast::engine {

using tensorflow::Tensor;

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

}  // namespace colcast::engine
