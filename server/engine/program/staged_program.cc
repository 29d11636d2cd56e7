#include "server/engine/program/staged_program.h"

#include <algorithm>
#include <utility>

#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;

// After each window of this many rows, states::ReuseEstimator judges whether caching pays.
constexpr int64_t kUserWindowRows = 32;
constexpr int64_t kRowWindowRows = 512;

// Whether rows of the two inputs have the same dtype, and shapes that do not contradict each other.
bool RowsFit(const DeclaredInput& a, const DeclaredInput& b) {
  if (a.dtype != b.dtype) return false;
  if (a.unknown_rank || b.unknown_rank) return true;
  if (a.dims.size() != b.dims.size()) return false;
  for (size_t d = 1; d < a.dims.size(); ++d) {
    if (a.dims[d] >= 0 && b.dims[d] >= 0 && a.dims[d] != b.dims[d]) return false;
  }
  return true;
}

// For each input of `stage`, the position of the same input in `late`; empty if one is missing.
std::vector<int> PositionsOf(const SignatureInputs& stage, const SignatureInputs& late) {
  std::vector<int> positions;
  for (const DeclaredInput& input : stage.inputs()) {
    const int position = late.Find(input.alias);
    if (position < 0 || !RowsFit(input, late.inputs()[position])) return {};
    positions.push_back(position);
  }
  return positions;
}

// Treats each user's candidates as a separate request, unless the batch pads them together.
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
    const bool is_user = stages_.empty();
    stages_.emplace_back(signature, name, PositionsOf(signature->inputs(), late_->inputs()),
                         is_user ? memories.user.get() : memories.item.get(),
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
  if (stages_.size() <= kItem || last_.signature().output_aliases() != late_->output_aliases()) {
    return false;
  }
  std::vector<LastStage::Domain> domains;
  for (const Stage& stage : stages_) {
    if (stage.inputs().empty()) return false;
    domains.push_back({stage.domain(), stage.signature().output_aliases()});
  }
  if (!last_.Connect(domains, late, &context_inputs_)) return false;
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (last_.has_index(i) == (i == kItem)) return false;
  }
  is_user_input_.assign(late.inputs().size(), false);
  for (const int position : stages_[kUser].inputs()) is_user_input_[position] = true;
  // Every column must belong to exactly one stage.
  std::vector<int> times_read(late.inputs().size());
  for (const Stage& stage : stages_) {
    for (const int position : stage.inputs()) ++times_read[position];
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
  for (const Stage& stage : stages_) {
    for (const int input : stage.lengths()) {
      own_lengths_.push_back(input);
      if (!stage.rows_have_one_shape()) joined_lengths_.push_back(input);
    }
  }
}

// Returns false if the rows of a stage cannot be grouped by the lengths of their lists.
bool StagedProgram::Begin(const Batch& batch, Scratch* scratch) const {
  bool grouped = true;
  if (scratch->size() < stages_.size()) scratch->resize(stages_.size());
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage::Rows& rows = (*scratch)[i];
    stages_[i].Begin(batch.domains[i].rows, batch.columns, &rows);
    if (i != kUser || batch.user_states == nullptr) {
      grouped &= stages_[i].SetReaders(ReadersOf(batch, i), &rows);
    }
  }
  return grouped;
}

void StagedProgram::End(Scratch* scratch) {
  for (Stage::Rows& rows : *scratch) Stage::End(&rows);
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
  if (batch.form != Batch::Form::kPrefetch || stages_[kUser].store().on()) {
    status = UserStates(batch, &states);
  }
  if (status.ok()) late_->NoRows(*batch.outputs, result);
  return status;
}

std::vector<states::StoreStats> StagedProgram::stats() const {
  std::vector<states::StoreStats> stats;
  for (const Stage& stage : stages_) stats.push_back(stage.stats());
  return stats;
}

absl::Status StagedProgram::UserStates(const Batch& batch, std::vector<Tensor>* states) {
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage::Rows& rows = (*scratch)[kUser];
  bool gain = false;
  // If a value is malformed, there are no keys; the run reports the error.
  LookForUsers(batch, &rows, &gain);
  absl::Status status = stages_[kUser].Complete(&rows, states);
  End(scratch);
  return status;
}

// Looks up all states. Sets `*gain` to true if the stages are worth running, for this request or
// the next. Returns false, without keys, if a value is malformed.
bool StagedProgram::Look(const Batch& batch, Scratch* scratch, bool* gain) {
  bool found = batch.user_states != nullptr || LookForUsers(batch, &(*scratch)[kUser], gain);
  for (size_t i = kItem; i < stages_.size() && batch.candidates > 0; ++i) {
    found &= LookForRows(i, batch, scratch, gain);
  }
  return found;
}

bool StagedProgram::LookForUsers(const Batch& batch, Stage::Rows* rows, bool* gain) {
  Stage& stage = stages_[kUser];
  states::StateStore& users = stage.store();
  if (!users.on()) {
    rows->keys.clear();
    return true;
  }
  // A request has few users, so they are always looked up. A prefetch announces that its user will
  // come again.
  const bool keep = batch.form == Batch::Form::kPrefetch || users.reuse().good();
  size_t num_found = 0;
  if (!stage.Find(rows, &num_found)) return false;
  if (!keep) rows->keys.clear();
  *gain |= keep || num_found > 0;
  return true;
}

bool StagedProgram::LookForRows(size_t domain, const Batch& batch, Scratch* scratch, bool* gain) {
  Stage& stage = stages_[domain];
  Stage::Rows& rows = (*scratch)[domain];
  const Batch::Domain& sent = batch.domains[domain];
  // Rows may repeat where several requests or users send the same items, and in columns that a
  // request could have sent once.
  const bool may_repeat = sent.has_index() ? batch.of_several
                                           : (domain > kItem || batch.domains[kUser].rows > 1) &&
                                                 rows.count == batch.candidates;
  if (may_repeat && rows.count > 1) {
    if (!stage.MergeRepeated(&rows)) return false;
    *gain |= !rows.merged.empty();
    if (!rows.merged.empty() && sent.has_index()) {
      std::vector<int64_t> of_candidates;
      for (const int64_t row : RowsIn(sent.index)) of_candidates.push_back(rows.merged[row]);
      rows.merged = std::move(of_candidates);
    }
  }
  return stage.LookFor(&rows, gain);
}

bool StagedProgram::IsPrefetch(const ReceivedRequest& received) const {
  if (received.has_unknown || !received.may_lack_candidates) return false;
  size_t users = 0;
  for (size_t i = 0; i < received.columns.size(); ++i) {
    if (received.columns[i] == nullptr) continue;
    const absl::Span<const int64_t> dims = received.columns[i]->dims();
    users += is_user_input_[i];
    if (!is_user_input_[i] && (dims.empty() || dims[0] != 0)) return false;
  }
  return users > 0;
}

absl::Status StagedProgram::PlanPrefetch(const ReceivedRequest& received, Batch* batch) const {
  const SignatureInputs& inputs = stages_[kUser].signature().inputs();
  std::vector<const ColumnSource*> columns;
  for (const int input : stages_[kUser].inputs()) columns.push_back(received.columns[input]);
  batch->columns = received.columns;
  batch->form = Batch::Form::kPrefetch;
  batch->domains.assign(stages_.size(), {});
  ExpansionPlan plan;
  absl::Status status = inputs.Plan(columns, {}, &plan);
  if (!status.ok() || plan.rows == 1) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("a request without candidates has ", plan.rows, " users; expected 1"));
}

}  // namespace colcast::engine
