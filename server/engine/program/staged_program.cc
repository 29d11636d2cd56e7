#include "server/engine/program/staged_program.h"

#include <algorithm>
#include <utility>

#include "server/base/scratch.h"
#include "server/engine/program/gathered_rows.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;

// After each window of this many rows, states::ReuseEstimator judges whether caching pays.
constexpr int64_t kUserWindowRows = 32;
constexpr int64_t kRowWindowRows = 512;

// For each input of `stage`, the position of the same input in `late`; empty if one is missing.
std::vector<int> PositionsOf(const SignatureInputs& stage, const SignatureInputs& late) {
  std::vector<int> positions;
  for (const DeclaredInput& input : stage.inputs()) {
    const int position = late.Find(input.alias);
    if (position < 0 || late.inputs()[position].dtype != input.dtype) return {};
    positions.push_back(position);
  }
  return positions;
}

// Each user's candidates are a request. Its lists are padded to its own longest ones.
Readers ReadersOf(const Batch& batch, size_t domain) {
  Readers readers;
  if (domain == kUser) {
    readers.each_alone = !batch.pads_together;
    return readers;
  }
  const Batch::Domain& own = batch.domains[domain];
  if (own.has_index()) readers.rows = RowsIn(own.index);
  if (own.rows > 1 && !batch.pads_together) readers.requests = RowsIn(batch.domains[kUser].index);
  return readers;
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

StagedProgram::StagedProgram(const StageSignatures& signatures, const Domains& domains,
                             const StateCaches& memories)
    : late_(signatures.late),
      columns_(&domains),
      last_(signatures.pair),
      many_users_per_run_(signatures.many_users_per_run && signatures.pair->record().independent) {
  for (const auto& [name, signature] : signatures.domains) {
    const bool is_user = domains_.empty();
    domains_.emplace_back(signature, name, is_user ? memories.user.get() : memories.item.get(),
                          is_user ? kUserWindowRows : kRowWindowRows);
  }
}

std::unique_ptr<StagedProgram> StagedProgram::Create(const StageSignatures& signatures,
                                                     const Domains& domains,
                                                     const StateCaches& memories) {
  for (const auto& [name, stage] : signatures.domains) {
    if (stage == nullptr || !stage->record().independent) return nullptr;
  }
  if (signatures.pair == nullptr || !signatures.pair->record().recorded) return nullptr;
  std::unique_ptr<StagedProgram> program(new StagedProgram(signatures, domains, memories));
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
  // Each column may belong to only one stage.
  std::vector<int> times_read(late.inputs().size());
  for (const Domain& domain : domains_) {
    for (const int position : domain.inputs) ++times_read[position];
  }
  for (const int position : context_inputs_) ++times_read[position];
  SetLengths();
  return std::all_of(times_read.begin(), times_read.end(), [](int times) { return times == 1; });
}

void StagedProgram::SetLengths() {
  const SignatureInputs& last = last_.signature().inputs();
  for (const int input : last_.signature().lists().own_lengths()) {
    const int position = late_->inputs().Find(last.inputs()[input].alias);
    if (position >= 0) last_lengths_.push_back(position);
  }
  own_lengths_ = joined_lengths_ = last_lengths_;
  for (const Domain& domain : domains_) {
    for (const int input : domain.stage.lengths()) {
      own_lengths_.push_back(domain.inputs[input]);
      if (!domain.stage.rows_have_one_shape()) joined_lengths_.push_back(domain.inputs[input]);
    }
  }
}

// Returns false if the rows of a stage cannot be grouped by the lengths of their lists.
bool StagedProgram::Begin(const Batch& batch, Scratch* scratch) const {
  bool grouped = true;
  if (scratch->rows.size() < domains_.size()) scratch->rows.resize(domains_.size());
  scratch->merged.resize(std::max(scratch->merged.size(), domains_.size()));
  for (size_t i = 0; i < domains_.size(); ++i) {
    Stage::Rows& rows = scratch->rows[i];
    domains_[i].stage.Begin(batch.domains[i].rows, &rows);
    const std::vector<int>& inputs = domains_[i].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) rows.columns[k] = batch.columns[inputs[k]];
    scratch->merged[i].clear();
    if (i != kUser || batch.user_states == nullptr) {
      grouped &= domains_[i].stage.SetReaders(ReadersOf(batch, i), &rows);
    }
  }
  return grouped;
}

void StagedProgram::End(Scratch* scratch) const {
  for (Stage::Rows& rows : scratch->rows) Stage::End(&rows);
  for (std::vector<int64_t>& merged : scratch->merged) {
    const FreeIfLarge free_merged(&merged);
  }
}

bool StagedProgram::Accepts(const Batch& batch) const {
  switch (batch.form) {
    case Batch::Form::kRows:
      return batch.candidates > 0;
    case Batch::Form::kIndexed:
    case Batch::Form::kPrefetch:
      return true;
    case Batch::Form::kOneUser:
    case Batch::Form::kAsSent:
      break;
  }
  return false;
}

absl::StatusOr<bool> StagedProgram::Run(const Batch& batch, RunResult* result) {
  if (batch.candidates == 0) {
    if (absl::Status status = RunUsers(batch, result); !status.ok()) return status;
    return true;
  }
  const bool must_gain = batch.form == Batch::Form::kRows && batch.user_states == nullptr;
  Scratch* const scratch = ThreadScratch();
  const bool grouped = Begin(batch, scratch);
  bool gain = false;
  // If a value is malformed, there are no keys; the run reports the error.
  const bool looked = grouped && Look(batch, scratch, &gain);
  const bool runs = grouped && (!must_gain || (looked && gain));
  absl::Status status = absl::OkStatus();
  if (runs) status = Score(batch, scratch, result);
  End(scratch);
  if (!status.ok()) return status;
  return runs;
}

// Runs a batch without candidates.
absl::Status StagedProgram::RunUsers(const Batch& batch, RunResult* result) {
  std::vector<Tensor> states;
  absl::Status status = absl::OkStatus();
  if (batch.form != Batch::Form::kPrefetch) {
    status = UserStates(batch, &states);
  } else if (domains_[kUser].stage.store().on()) {
    status = Prefetch(batch, &states);
  }
  if (status.ok()) late_->NoRows(*batch.outputs, result);
  return status;
}

// Computes the candidates' outputs, after the lookups.
absl::Status StagedProgram::Score(const Batch& batch, Scratch* scratch, RunResult* result) {
  LastStage::Feeds feeds;
  feeds.candidates = batch.candidates;
  feeds.states.resize(domains_.size());
  // Computes the user first, because other requests may be waiting for it.
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (i == kUser && batch.user_states != nullptr) {
      feeds.states[i] = *batch.user_states;
      continue;
    }
    absl::Status status = domains_[i].stage.Complete(&scratch->rows[i], &feeds.states[i]);
    if (!status.ok()) return status;
  }
  SetIndices(batch, *scratch, &feeds);
  absl::Status status = absl::OkStatus();
  // The last stage takes one item state per candidate, without an index.
  const std::vector<int64_t>& merged = scratch->merged[kItem];
  const absl::Span<const int64_t> item_of =
      merged.empty() ? RowsIn(batch.domains[kItem].index) : absl::MakeConstSpan(merged);
  if (!item_of.empty()) {
    for (Tensor& state : feeds.states[kItem]) status.Update(GatherRows(state, item_of, &state));
  }
  if (status.ok()) status = SetContext(batch, &feeds);
  if (!status.ok()) return status;
  const bool together = batch.domains[kUser].rows == 1 ||
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
  feeds->indices.resize(domains_.size());
  for (size_t i = 0; i < domains_.size(); ++i) {
    if (!last_.has_index(i)) continue;
    Tensor& index = feeds->indices[i];
    if (!scratch.merged[i].empty()) {
      index = IndexOf(scratch.merged[i]);
    } else if (batch.domains[i].has_index()) {
      index = batch.domains[i].index;
    } else if (batch.domains[i].rows == 1) {
      index = LastStage::FirstRow(batch.candidates);
    } else {
      index = EachRow(batch.candidates);
    }
  }
}

std::vector<states::StoreStats> StagedProgram::stats() const {
  std::vector<states::StoreStats> stats;
  for (const Domain& domain : domains_) stats.push_back(domain.stage.stats());
  return stats;
}

absl::Status StagedProgram::UserStates(const Batch& batch, std::vector<Tensor>* states) {
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage::Rows& rows = scratch->rows[kUser];
  bool gain = false;
  // If a value is malformed, there are no keys; the run reports the error.
  LookForUsers(&rows, &gain);
  absl::Status status = domains_[kUser].stage.Complete(&rows, states);
  End(scratch);
  return status;
}

}  // namespace colcast::engine
