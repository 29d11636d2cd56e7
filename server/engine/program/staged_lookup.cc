#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/program/row_hash.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/row_index.h"

namespace colcast::engine {
namespace {

using states::StateStore;

constexpr size_t kUser = Batch::kUser;

// After this many requests without repeated rows, only one request in this many is searched for
// them.
constexpr int64_t kUnrepeatedRequests = 16;

}  // namespace

// Looks up all states. Sets `*gain` to true if the stages are worth running, for this request or
// the next. False if a value is malformed, so that there are no keys.
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
  // Users are few rows, so they are always looked up.
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

}  // namespace colcast::engine
