#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// The largest index that a thread keeps for its next request.
constexpr int64_t kMostKeptCandidates = 1000;

int PositionOf(const std::vector<std::string>& aliases, const std::string& alias) {
  const auto found = std::lower_bound(aliases.begin(), aliases.end(), alias);
  const bool is_there = found != aliases.end() && *found == alias;
  return is_there ? static_cast<int>(found - aliases.begin()) : -1;
}

Tensor IndexOf(const std::vector<int64_t>& rows) {
  Tensor index(tensorflow::DT_INT64, tensorflow::TensorShape({static_cast<int64_t>(rows.size())}));
  std::copy(rows.begin(), rows.end(), static_cast<int64_t*>(index.data()));
  return index;
}

}  // namespace

bool LastStage::Connect(absl::Span<const Domain> domains, const SignatureInputs& late,
                        std::vector<int>* context) {
  has_index_.assign(domains.size(), false);
  size_t num_states = 0;
  for (const DeclaredInput& declared : signature_->inputs().inputs()) {
    Place place;
    const int column = late.Find(declared.alias);
    if (column >= 0) {
      place = {Source::kContext, 0, static_cast<int>(context->size())};
      context->push_back(column);
    } else if (!FindSource(declared.alias, domains, &place)) {
      return false;
    }
    num_states += place.source == Source::kState;
    if (place.source == Source::kIndex) has_index_[place.domain] = true;
    places_.push_back(place);
  }
  size_t made = 0;
  for (const Domain& domain : domains) made += domain.states.size();
  return num_states == made;
}

bool LastStage::FindSource(const std::string& alias, absl::Span<const Domain> domains,
                           Place* place) {
  for (size_t i = 0; i < domains.size(); ++i) {
    const int state = PositionOf(domains[i].states, alias);
    if (state >= 0) {
      *place = {Source::kState, i, state};
    } else if (alias == RowTo(domains[i].name)) {
      *place = {Source::kIndex, i, 0};
    } else if (alias == absl::StrCat(domains[i].name, "_state/row")) {
      *place = {Source::kStateRow, i, 0};
    } else {
      continue;
    }
    return true;
  }
  return false;
}

Tensor LastStage::FirstRow(int64_t rows) {
  // A thread's requests of the same size share this tensor, because no op writes to a tensor that
  // others hold.
  thread_local Tensor last;
  if (last.dims() == 1 && last.dim_size(0) == rows) return last;
  Tensor zeros(tensorflow::DT_INT64, tensorflow::TensorShape({rows}));
  if (rows > 0) std::memset(zeros.data(), 0, rows * sizeof(int64_t));
  if (rows <= kMostKeptCandidates) last = zeros;
  return zeros;
}

absl::Status LastStage::Run(const Feeds& feeds, const std::vector<int>& outputs,
                            RunResult* result) const {
  const ObservedStage observed("candidate", feeds.candidates, -1);
  std::vector<Tensor> tensors;
  tensors.reserve(places_.size());
  for (const Place& place : places_) {
    switch (place.source) {
      case Source::kState:
        tensors.push_back(feeds.states[place.domain][place.index]);
        break;
      case Source::kStateRow:
        tensors.push_back(EachRow(feeds.states[place.domain][0].dim_size(0)));
        break;
      case Source::kIndex:
        tensors.push_back(feeds.indices[place.domain]);
        break;
      case Source::kContext:
        tensors.push_back(feeds.context[place.index]);
    }
  }
  absl::Status status = signature_->RunFeeds(tensors, outputs, result);
  return status.ok() ? CheckRows(result->aliases, result->tensors, feeds.candidates) : status;
}

absl::Status LastStage::RunByUser(const Feeds& feeds, const std::vector<int>& outputs,
                                  RunResult* result) const {
  const int64_t users = feeds.states[0][0].dim_size(0);
  const auto run = [&](int64_t user, absl::Span<const int64_t> rows, RunResult* of_user) {
    Feeds one = feeds;
    absl::Status status = Pick(rows, &one);
    for (Tensor& state : one.states[0]) status.Update(GatherRows(state, {user}, &state));
    one.indices[0] = FirstRow(one.candidates);
    return status.ok() ? Run(one, outputs, of_user) : status;
  };
  return colcast::engine::RunByUser(RowsIn(feeds.indices[0]), users, run, result);
}

// Reduces the feeds to the candidates `rows`.
absl::Status LastStage::Pick(absl::Span<const int64_t> rows, Feeds* feeds) const {
  absl::Status status = absl::OkStatus();
  feeds->candidates = static_cast<int64_t>(rows.size());
  for (size_t domain = 0; domain < feeds->states.size(); ++domain) {
    if (has_index_[domain]) {
      Tensor& index = feeds->indices[domain];
      status.Update(GatherRows(index, rows, &index));
      continue;
    }
    for (Tensor& state : feeds->states[domain]) status.Update(GatherRows(state, rows, &state));
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].source != Source::kContext) continue;
    Tensor& column = feeds->context[places_[i].index];
    status.Update(PickRows(signature_->inputs().inputs()[i], column, rows, &column));
  }
  return status;
}

// Scores the candidates, after all states were looked up.
absl::Status StagedProgram::Score(const Batch& batch, Scratch* scratch, RunResult* result) {
  LastStage::Feeds feeds;
  feeds.candidates = batch.candidates;
  feeds.states.resize(stages_.size());
  // Computes the user first, because other requests may be waiting for it.
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (i == Batch::kUser && batch.user_states != nullptr) {
      feeds.states[i] = *batch.user_states;
      continue;
    }
    absl::Status status = stages_[i].Complete(&(*scratch)[i], &feeds.states[i]);
    if (!status.ok()) return status;
  }
  SetIndices(batch, *scratch, &feeds);
  absl::Status status = absl::OkStatus();
  // The last stage takes one item state per candidate, without an index.
  const std::vector<int64_t>& merged = (*scratch)[kItem].merged;
  const absl::Span<const int64_t> item_of =
      merged.empty() ? RowsIn(batch.domains[kItem].index) : absl::MakeConstSpan(merged);
  if (!item_of.empty()) {
    for (Tensor& state : feeds.states[kItem]) status.Update(GatherRows(state, item_of, &state));
  }
  if (status.ok()) status = SetContext(batch, &feeds);
  if (!status.ok()) return status;
  const bool together = batch.domains[Batch::kUser].rows == 1 ||
                        (many_users_per_run_ &&
                         (batch.pads_together || columns_->HaveOneLength(batch, last_lengths_)));
  return together ? last_.Run(feeds, *batch.outputs, result)
                  : last_.RunByUser(feeds, *batch.outputs, result);
}

// Feeds the late signature's columns that no stage reads.
absl::Status StagedProgram::SetContext(const Batch& batch, LastStage::Feeds* feeds) const {
  GatheredRows gathered(late_->inputs().limits().max_expanded_bytes);
  for (const int input : context_inputs_) {
    Tensor& feed = feeds->context.emplace_back();
    absl::Status status = columns_->BuildFeed(batch, input, &feed);
    const int domain = columns_->domain_of(input);
    if (status.ok() && batch.has_index(domain)) {
      status = gathered.Gather(RowsIn(batch.domains[domain].index), &feed);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void StagedProgram::SetIndices(const Batch& batch, const Scratch& scratch,
                               LastStage::Feeds* feeds) const {
  feeds->indices.resize(stages_.size());
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (!last_.has_index(i)) continue;
    Tensor& index = feeds->indices[i];
    if (!scratch[i].merged.empty()) {
      index = IndexOf(scratch[i].merged);
    } else if (batch.domains[i].has_index()) {
      index = batch.domains[i].index;
    } else if (batch.domains[i].rows == 1) {
      index = LastStage::FirstRow(batch.candidates);
    } else {
      index = EachRow(batch.candidates);
    }
  }
}

}  // namespace colcast::engine
