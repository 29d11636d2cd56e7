#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/program/row_hash.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/rows.h"

namespace colcast::engine {

namespace {

using states::StateStore;
using tensorflow::Tensor;

constexpr size_t kUser = Batch::kUser;

// After this many requests without repeated rows, searches only one request in this many.
constexpr int64_t kUnrepeatedRequests = 16;

}  // namespace

// Looks up all states. Sets `*gain` to true if the stages are worth running, for this request or
// the next. Returns false, without keys, if a value is malformed.
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
  // A request has few users, so they are always looked up.
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
  // Rows may repeat where several requests or users send the same items, and in columns that a
  // request could have sent once.
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
  const SignatureInputs& inputs = domains_[kUser].stage.signature().inputs();
  std::vector<ReceivedInput> of_user;
  for (const Input& input : received.inputs) {
    if (inputs.Find(input.name()) >= 0) of_user.push_back({input.name(), &input});
  }
  batch->columns = received.columns;
  batch->form = Batch::Form::kPrefetch;
  batch->domains.assign(domains_.size(), {});
  SignatureInputs::Scratch plan;
  inputs.FindAll(of_user, &plan.positions);
  absl::Status status = inputs.Plan(of_user, plan.positions, &plan);
  if (!status.ok() || plan.plan.rows == 1) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("a request without candidates has ", plan.plan.rows, " users; expected 1"));
}

// Caches the state even if users have not repeated so far: a prefetch announces that this one will.
absl::Status StagedProgram::Prefetch(const Batch& batch, std::vector<Tensor>* states) {
  Scratch* const scratch = ThreadScratch();
  Begin(batch, scratch);
  Stage& stage = domains_[kUser].stage;
  Stage::Rows& user = scratch->rows[kUser];
  size_t num_found = 0;
  // If a value is malformed, there are no keys; the run reports the error.
  stage.Find(&user, &num_found);
  absl::Status status = stage.Complete(&user, states);
  End(scratch);
  return status;
}

}  // namespace colcast::engine
