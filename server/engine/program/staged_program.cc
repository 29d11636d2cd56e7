#include "server/engine/program/staged_program.h"

#include <algorithm>
#include <utility>

#include "server/engine/row_index.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;

// Rows after which a store is judged (states::ReuseEstimator).
constexpr int64_t kUserStretch = 32;
constexpr int64_t kRowStretch = 512;

// For each input of `stage` the position of the same one in `late`; empty if there is none.
std::vector<int> PositionsOf(const SignatureInputs& stage, const SignatureInputs& late) {
  std::vector<int> positions;
  for (const DeclaredInput& input : stage.inputs()) {
    const int position = late.Find(input.alias);
    if (position < 0 || late.inputs()[position].dtype != input.dtype) return {};
    positions.push_back(position);
  }
  return positions;
}

Tensor IndexOf(const std::vector<int64_t>& rows) {
  Tensor index(tensorflow::DT_INT64, tensorflow::TensorShape({static_cast<int64_t>(rows.size())}));
  std::copy(rows.begin(), rows.end(), static_cast<int64_t*>(index.data()));
  return index;
}

}  // namespace

StagedProgram::Scratch* StagedProgram::ThreadScratch() {
  thread_local Scratch scratch;
  return &scratch;
}

StagedProgram::StagedProgram(const StageSignatures& signatures, const StateCaches& memories)
    : late_(signatures.late),
      last_(signatures.pair),
      many_users_per_run_(signatures.many_users_per_run && signatures.pair->record().independent),
      pairs_(memories.pair.get(), kRowStretch) {
  for (const auto& [name, signature] : signatures.domains) {
    const bool is_user = domains_.empty();
    domains_.emplace_back(signature, name, is_user ? memories.user.get() : memories.item.get(),
                          is_user ? kUserStretch : kRowStretch);
  }
}

std::unique_ptr<StagedProgram> StagedProgram::Create(const StageSignatures& signatures,
                                                     const StateCaches& memories) {
  for (const auto& [name, stage] : signatures.domains) {
    if (stage == nullptr || !stage->record().independent) return nullptr;
  }
  if (signatures.pair == nullptr || !signatures.pair->record().recorded) return nullptr;
  std::unique_ptr<StagedProgram> program(new StagedProgram(signatures, memories));
  return program->Connect() ? std::move(program) : nullptr;
}

bool StagedProgram::Connect() {
  const SignatureInputs& late = late_->inputs();
  if (domains_.size() <= kItem || last_.signature().output_aliases() != late_->output_aliases()) {
    return false;
  }
  std::vector<LastStage::Domain> domains;
  for (Domain& domain : domains_) {
    domain.inputs = PositionsOf(domain.stage.signature().inputs(), late);
    if (domain.inputs.empty()) return false;
    domains.push_back({domain.stage.domain(), domain.stage.signature().output_aliases()});
  }
  if (!last_.Connect(domains, late, &context_inputs_)) return false;
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (last_.has_index(i) == (i == kItem)) return false;
  }
  is_user_input_.assign(late.inputs().size(), false);
  for (const int position : domains_[kUser].inputs) is_user_input_[position] = true;
  // Every column belongs to one stage.
  std::vector<int> times_read(late.inputs().size());
  for (const Domain& domain : domains_) {
    for (const int position : domain.inputs) ++times_read[position];
  }
  for (const int position : context_inputs_) ++times_read[position];
  return std::all_of(times_read.begin(), times_read.end(), [](int times) { return times == 1; });
}

void StagedProgram::Begin(const Batch& batch, Scratch* scratch) const {
  if (scratch->rows.size() < domains_.size()) scratch->rows.resize(domains_.size());
  scratch->merged.resize(std::max(scratch->merged.size(), domains_.size()));
  for (size_t i = 0; i < domains_.size(); ++i) {
    Stage::Rows& rows = scratch->rows[i];
    domains_[i].stage.Begin(batch.domains[i].rows, &rows);
    const std::vector<int>& inputs = domains_[i].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) rows.columns[k] = batch.columns[inputs[k]];
    scratch->merged[i].clear();
  }
  scratch->candidates.clear();
}

// Neither the messages nor the states outlive the request.
void StagedProgram::End(Scratch* scratch) const {
  for (Stage::Rows& rows : scratch->rows) {
    rows.columns.clear();
    rows.found.clear();
  }
  scratch->pairs.found.clear();
}

// One user's candidates, as the late signature takes them.
Batch StagedProgram::BatchOf(const PlannedRequest& planned) const {
  Batch batch;
  batch.candidates = planned.rows();
  batch.columns.reserve(planned.plan.sources.size());
  for (const ColumnSource* const source : planned.plan.sources) {
    batch.columns.push_back(AsWire(source));
  }
  SetRows(&batch);
  return batch;
}

void StagedProgram::SetRows(Batch* batch) const {
  if (batch->domains.size() < domains_.size()) batch->domains.resize(domains_.size());
  batch->domains[kUser].rows = 1;
  batch->domains[kItem].rows = batch->candidates;
  for (size_t i = kItem + 1; i < domains_.size(); ++i) {
    batch->domains[i].rows = 1;
    for (const int input : domains_[i].inputs) {
      const DeclaredInput& declared = late_->inputs().inputs()[input];
      if (HasRows(declared, batch->columns[input], batch->candidates)) {
        batch->domains[i].rows = batch->candidates;
      }
    }
  }
}

absl::StatusOr<bool> StagedProgram::Run(const PlannedRequest& planned, RunResult* result) {
  if (planned.rows() == 0) return false;
  const std::vector<int>& outputs = planned.outputs;
  const Batch batch = BatchOf(planned);
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  PairCache::Rows& pairs = scratch->pairs;
  const bool keep_pairs = FindPairs(planned, batch, scratch);
  bool done = keep_pairs && pairs.missing.empty();
  absl::Status status = absl::OkStatus();
  if (done) {
    late_->NoRows(outputs, result);  // their names
    result->tensors.clear();
  } else {
    bool gain = keep_pairs && pairs_.store().reuse().good();
    const auto context = [&](int input, Tensor* feed) {
      return late_->inputs().BuildFeed(input, planned.plan, feed);
    };
    done = Look(batch, scratch, &gain) && gain;
    if (done) status = Score(batch, scratch, outputs, context, result);
  }
  if (done && status.ok() && keep_pairs) status = pairs_.Join(pairs, &result->tensors);
  if (!done || !status.ok()) {
    result->aliases.clear();
    result->tensors.clear();
  }
  End(scratch);
  if (!status.ok()) return status;
  return done;
}

// The outputs of the candidates to be scored, whose states have been looked for.
absl::Status StagedProgram::Score(const Batch& batch, Scratch* scratch,
                                  const std::vector<int>& outputs, MakeContext context,
                                  RunResult* result) {
  const std::vector<int64_t>& wanted = scratch->candidates;
  LastStage::Feeds feeds;
  feeds.candidates = wanted.empty() ? batch.candidates : static_cast<int64_t>(wanted.size());
  feeds.states.resize(domains_.size());
  // The user first: others may wait for it.
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (i == kUser && batch.user_states != nullptr) {
      feeds.states[i] = *batch.user_states;
      continue;
    }
    absl::Status status = domains_[i].stage.Complete(&scratch->rows[i], &feeds.states[i]);
    if (!status.ok()) return status;
  }
  absl::Status status = SetIndices(batch, *scratch, &feeds);
  // Candidate i reads item i.
  const std::vector<int64_t>& merged = scratch->merged[kItem];
  const absl::Span<const int64_t> item_of =
      merged.empty() ? RowsIn(batch.domains[kItem].index) : absl::MakeConstSpan(merged);
  if (!item_of.empty()) {
    for (Tensor& state : feeds.states[kItem]) status.Update(GatherRows(state, item_of, &state));
  }
  for (const int input : context_inputs_) {
    if (!status.ok()) return status;
    Tensor& feed = feeds.context.emplace_back();
    status = context(input, &feed);
    const bool has_rows = late_->inputs().inputs()[input].batched() && feed.dims() > 0;
    if (status.ok() && has_rows && !wanted.empty()) status = GatherRows(feed, wanted, &feed);
  }
  if (!status.ok()) return status;
  return many_users_per_run_ || batch.domains[kUser].rows == 1
             ? last_.Run(feeds, outputs, result)
             : last_.RunByUser(feeds, outputs, result);
}

absl::Status StagedProgram::SetIndices(const Batch& batch, const Scratch& scratch,
                                       LastStage::Feeds* feeds) {
  const std::vector<int64_t>& wanted = scratch.candidates;
  feeds->indices.resize(domains_.size());
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!last_.has_index(i)) continue;
    Tensor& index = feeds->indices[i];
    if (!scratch.merged[i].empty()) {
      index = IndexOf(scratch.merged[i]);
    } else if (batch.domains[i].has_index()) {
      index = batch.domains[i].index;
    } else if (batch.domains[i].rows == 1) {
      index = LastStage::FirstRow(feeds->candidates);
      continue;
    } else {
      index = EachRow(batch.candidates);
    }
    if (wanted.empty()) continue;
    if (absl::Status status = GatherRows(index, wanted, &index); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<states::StoreStats> StagedProgram::stats() const {
  std::vector<states::StoreStats> stats;
  for (const Domain& domain : domains_) stats.push_back(domain.stage.stats());
  if (pairs_.store().on()) stats.push_back(pairs_.store().stats());
  return stats;
}

absl::Status StagedProgram::UserStates(const Batch& batch, std::vector<Tensor>* states) {
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage::Rows& rows = scratch->rows[kUser];
  bool gain = false;
  // What is malformed has no keys; the run says what it is.
  LookForUsers(&rows, &gain);
  absl::Status status = domains_[kUser].stage.Complete(&rows, states);
  End(scratch);
  return status;
}

absl::Status StagedProgram::RunBatch(const Batch& batch, const std::vector<int>& outputs,
                                     MakeContext context, RunResult* result) {
  if (batch.candidates == 0) {
    std::vector<Tensor> states;
    absl::Status status = UserStates(batch, &states);
    if (status.ok()) late_->NoRows(outputs, result);
    return status;
  }
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  bool gain = false;
  // What is malformed has no keys; the run says what it is.
  Look(batch, scratch, &gain);
  absl::Status status = Score(batch, scratch, outputs, context, result);
  End(scratch);
  return status;
}

}  // namespace colcast::engine
