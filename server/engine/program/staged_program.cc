#include "server/engine/program/staged_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/row_index.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using states::StateStore;
using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;
constexpr size_t kItem = 1;

// Rows after which a store is judged (states::ReuseEstimator).
constexpr int64_t kUserStretch = 32;
constexpr int64_t kRowStretch = 512;

// After so many requests without, repeated rows are looked for in one of so many.
constexpr int64_t kUnrepeatedRequests = 16;

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

// What a thread keeps from one request to the next. Both by domain.
struct StagedProgram::Scratch {
  std::deque<Stage::Rows> rows;
  std::vector<std::vector<int64_t>> merged;  // the index of rows that repeat; empty: none does
  PairCache::Rows pairs;
  std::vector<int64_t> candidates;  // those to be scored, rising; empty: all
};

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
      const WireColumn* const column = batch->columns[input];
      const bool has_rows = column != nullptr && late_->inputs().inputs()[input].batched() &&
                            !column->dims().empty() && column->dims()[0] == batch->candidates;
      if (has_rows) batch->domains[i].rows = batch->candidates;
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

// Whether pairs are looked for: then the candidates that are wanted are those not found.
bool StagedProgram::FindPairs(const PlannedRequest& planned, const Batch& batch, Scratch* scratch) {
  StateStore& store = pairs_.store();
  scratch->pairs.missing.clear();
  if (!keeps_pairs()) return false;
  if (!store.reuse().Look()) {
    store.counters().Add(&states::Counters::not_looked, batch.candidates);
    return false;
  }
  thread_local std::vector<states::Key> context;
  std::vector<absl::Span<const states::Key>> keys;
  bool made = MakeContextKeys(planned, &context);
  for (size_t i = 0; i < domains_.size() && made; ++i) {
    made = domains_[i].stage.MakeKeys(&scratch->rows[i]);
    keys.emplace_back(scratch->rows[i].keys);
  }
  if (!made) {
    for (Stage::Rows& rows : scratch->rows) rows.keys.clear();
    return false;
  }
  keys.emplace_back(context);
  PairCache::Rows& pairs = scratch->pairs;
  pairs_.Find(batch.candidates, keys, planned.outputs, &pairs);
  if (pairs.missing.size() < pairs.keys.size()) {
    scratch->rows[kItem].wanted = scratch->candidates = pairs.missing;
  }
  return true;
}

bool StagedProgram::MakeContextKeys(const PlannedRequest& planned,
                                    std::vector<states::Key>* keys) const {
  for (const int lengths : late_->lists().own_lengths()) {
    if (!HaveOneLength(AsWire(planned.plan.sources[lengths]))) return false;
  }
  thread_local states::RowKeys row_keys;
  row_keys.Begin(planned.rows(), pairs_.store().hash());
  for (const int position : context_inputs_) {
    const WireColumn* const column = AsWire(planned.plan.sources[position]);
    if (column == nullptr) {
      row_keys.AddAbsent();
    } else if (late_->inputs().inputs()[position].batched() && !column->dims().empty() &&
               column->dims()[0] == planned.rows()) {
      if (!row_keys.AddRows(column->column(), column->count()).ok()) return false;
    } else {
      row_keys.AddShared(column->column());
    }
  }
  row_keys.Finish(keys);
  return true;
}

// Looks for all states. `*gain` becomes true if stages are worth running, now or for the next
// request. False if a value is malformed: it has no keys.
bool StagedProgram::Look(const Batch& batch, Scratch* scratch, bool* gain) {
  bool found = batch.user_states != nullptr || LookForUsers(&scratch->rows[kUser], gain);
  for (size_t i = kItem; i < domains_.size() && batch.candidates > 0; ++i) {
    found &= LookForRows(i, batch, scratch, gain);
  }
  return found;
}

bool StagedProgram::LookForUsers(Stage::Rows* rows, bool* gain) {
  Stage& stage = domains_[kUser].stage;
  StateStore& users = stage.store();
  if (!users.on()) {
    rows->keys.clear();
    return true;
  }
  // Users are few rows: they are always looked for.
  const bool keep = users.reuse().good();
  size_t num_found = 0;
  if (!stage.Find(rows, &num_found)) return false;
  if (!keep) rows->keys.clear();
  *gain |= keep || num_found > 0;
  return true;
}

bool StagedProgram::LookForRows(size_t domain, const Batch& batch, Scratch* scratch, bool* gain) {
  Domain& own = domains_[domain];
  Stage::Rows& rows = scratch->rows[domain];
  const Batch::Domain& sent = batch.domains[domain];
  // Items come again with another user's candidates, and whatever is sent once in every request.
  const bool may_repeat = sent.has_index() ? batch.of_several
                                           : (domain > kItem || batch.domains[kUser].rows > 1) &&
                                                 rows.count == batch.candidates;
  if (may_repeat && rows.count > 1) {
    const int64_t times = own.unrepeated.load(std::memory_order_relaxed);
    const bool look = times < kUnrepeatedRequests || times % kUnrepeatedRequests == 0;
    if (look && rows.keys.empty() && !own.stage.MakeKeys(&rows)) return false;
    std::vector<int64_t>& index = scratch->merged[domain];
    const bool merged = look && Stage::MergeRepeated(&rows, &index);
    if (!merged) index.clear();
    if (merged && sent.has_index()) {
      std::vector<int64_t> of_candidates;
      for (const int64_t row : RowsIn(sent.index)) of_candidates.push_back(index[row]);
      index = std::move(of_candidates);
    }
    own.unrepeated.store(merged ? 0 : times + 1, std::memory_order_relaxed);
    *gain |= merged;
  }
  return own.stage.LookFor(&rows, gain);
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

bool StagedProgram::IsPrefetch(const PlannedRequest& received) const {
  size_t users = 0;
  for (size_t i = 0; i < received.inputs.size(); ++i) {
    const int position = received.plan.positions[i];
    if (position < 0) return false;
    const bool is_user = is_user_input_[position];
    const absl::Span<const int64_t> dims = received.inputs[i].source->dims();
    users += is_user;
    if (!is_user && (dims.empty() || dims[0] != 0)) return false;
  }
  return users > 0;
}

absl::Status StagedProgram::Prefetch(const PlannedRequest& received, RunResult* result) {
  Stage& stage = domains_[kUser].stage;
  Batch batch;
  batch.domains.resize(domains_.size());
  batch.columns.resize(late_->inputs().inputs().size());
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage::Rows& user = scratch->rows[kUser];
  std::vector<ReceivedInput> of_user;
  for (const ReceivedInput& input : received.inputs) {
    const int position = stage.signature().inputs().Find(input.alias);
    if (position < 0) continue;
    user.columns[position] = AsWire(input.source);
    of_user.push_back(input);
  }
  SignatureInputs::Scratch& plan = user.inputs;
  stage.signature().inputs().FindAll(of_user, &plan.positions);
  absl::Status status = stage.signature().inputs().Plan(of_user, plan.positions, &plan);
  if (status.ok() && plan.plan.rows != 1) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a request without candidates has ", plan.plan.rows, " users; expected 1"));
  }
  if (status.ok() && stage.store().on()) {
    size_t num_found = 0;
    std::vector<Tensor> states;
    // Where a value is malformed, the run says so.
    stage.Find(&user, &num_found);
    status = stage.Complete(&user, &states);
  }
  End(scratch);
  result->expansion.rows = 0;
  if (status.ok()) late_->NoRows(received.outputs, result);
  return status;
}

bool StagedProgram::Fill(const PlannedRequest& received) {
  for (size_t i = kItem; i < domains_.size(); ++i) {
    Stage& stage = domains_[i].stage;
    Scratch* const scratch = ThreadScratch();
    if (scratch->rows.size() < domains_.size()) scratch->rows.resize(domains_.size());
    Stage::Rows& rows = scratch->rows[i];
    int64_t others = 0;
    const WireColumn* any = nullptr;
    for (const WireColumn& column : received.columns) {
      const bool is_own = stage.signature().inputs().Find(column.column().name) >= 0;
      if (is_own && !column.dims().empty()) any = &column;
      others += !is_own && late_->inputs().Find(column.column().name) >= 0;
    }
    if (any == nullptr || others > 0) continue;
    stage.Begin(any->dims()[0], &rows);
    for (const WireColumn& column : received.columns) {
      const int position = stage.signature().inputs().Find(column.column().name);
      if (position >= 0) rows.columns[position] = &column;
    }
    const bool filled = stage.Fill(&rows);
    End(scratch);
    return filled;
  }
  return false;
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
