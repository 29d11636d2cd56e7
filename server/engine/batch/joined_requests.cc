#include "server/engine/batch/joined_requests.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/numeric/bits.h"
#include "server/base/scratch.h"
#include "server/engine/batch/stacked_batch.h"
#include "server/engine/examples/transcoding.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/programs.h"
#include "server/engine/rows.h"
#include "server/engine/signature.h"
#include "server/engine/status.h"

namespace colcast::engine {
namespace {

const RequestPlan& PlanOf(const BatchMember& member) {
  return static_cast<const RequestPlan&>(*member.plan);
}

// A member that may be stacked with others.
struct Joinable {
  BatchMember* member = nullptr;
  const Batch* batch = nullptr;
  // The longest length in each of Programs::joined_lengths(); -1 if the list was left out.
  std::vector<int64_t> longest;

  int64_t rows() const { return batch->candidates; }
};
using Group = std::vector<const Joinable*>;

// Lists of up to 8 values share a bucket. Padding a longer list to the longest in its bucket less
// than doubles it.
int64_t Bucket(int64_t length) {
  constexpr int64_t kShort = 8;
  return length <= kShort ? 0 : absl::bit_width(static_cast<uint64_t>(length - 1));
}

// Whether columns of these shapes may be stacked. Their numbers of rows may differ.
bool DimsFit(absl::Span<const int64_t> a, absl::Span<const int64_t> b, bool has_lengths,
             bool pad_any) {
  if (a.size() != b.size()) return false;
  for (size_t d = 1; d < a.size(); ++d) {
    if (a[d] == b[d]) continue;
    if (has_lengths && d == 1 ? Bucket(a[d]) != Bucket(b[d]) : has_lengths || !pad_any) {
      return false;
    }
  }
  return true;
}

// Whether two requests may run together. Their dtypes already match the declared ones.
bool Fit(const Signature& signature, const BatchRules& rules, const Joinable& a,
         const Joinable& b) {
  if (*a.batch->outputs != *b.batch->outputs || a.longest != b.longest) return false;
  // A record does not say how scores depend on the width of a list without lengths.
  const bool pad_any = rules.pad_variable_length_inputs && !signature.record().recorded;
  for (size_t i = 0; i < a.batch->columns.size(); ++i) {
    const Input* const one = a.batch->columns[i];
    const Input* const other = b.batch->columns[i];
    if ((one == nullptr) != (other == nullptr)) return false;
    if (one == nullptr || (one->dims().size() == 1 && other->dims().size() == 1)) continue;
    const bool has_lengths = signature.lists().LengthsOf(i) >= 0;
    if (!DimsFit(one->dims(), other->dims(), has_lengths, pad_any)) return false;
  }
  return true;
}

// A request with no candidates, or with a column that lacks rows, must run alone.
bool HasRows(const Programs& programs, const Batch& batch) {
  if (batch.candidates == 0) return false;
  const absl::Span<const DeclaredInput> inputs = programs.signature().inputs().inputs();
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    if (batch.columns[i] == nullptr) continue;
    const absl::Span<const int64_t> dims = batch.columns[i]->dims();
    const int domain = programs.domains().domain_of(i);
    if (domain == Domains::kCandidates && !inputs[i].batched()) return false;
    const int64_t rows = batch.rows_of(domain);
    if (dims.empty() || rows == 0 || (dims[0] != 1 && dims[0] != rows)) return false;
  }
  return true;
}

// Sets `longest`. Returns false for a list without a width, which cannot be padded.
bool ReadLists(const Programs& programs, Joinable* joinable) {
  thread_local std::vector<int64_t> lengths;
  const FreeIfLarge free_lengths(&lengths);
  const ListColumns& lists = programs.signature().lists();
  const absl::Span<const Input* const> columns = joinable->batch->columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    const int place = lists.LengthsOf(i);
    if (place < 0 || columns[i] == nullptr || columns[place] == nullptr) continue;
    if (columns[i]->dims().size() < 2) return false;
  }
  joinable->longest.clear();
  for (const int place : programs.joined_lengths()) {
    int64_t& longest = joinable->longest.emplace_back(-1);
    if (columns[place] == nullptr) continue;
    if (!ReadLengths(*columns[place], &lengths)) return false;
    for (const int64_t length : lengths) longest = std::max({longest, length, int64_t{0}});
  }
  return true;
}

// Returns false if the member must run alone.
bool MayJoin(const Programs& programs, Joinable* joinable) {
  const Batch& batch = PlanOf(*joinable->member).batch;
  joinable->batch = &batch;
  return HasRows(programs, batch) && ReadLists(programs, joinable) &&
         programs.domains().HaveOneLength(batch, programs.joined_lengths());
}

int64_t RowsOf(const Group& group) {
  int64_t rows = 0;
  for (const Joinable* const joinable : group) rows += joinable->rows();
  return rows;
}

std::vector<const Batch*> BatchesOf(const Group& group) {
  std::vector<const Batch*> batches;
  for (const Joinable* const joinable : group) batches.push_back(joinable->batch);
  return batches;
}

// Collects the strings of every member's only column. Returns false if they cannot be read.
bool SetExamples(const Group& group, int64_t added_rows, DecodedRequest* request) {
  std::vector<Bytes> examples;
  for (const Joinable* const joinable : group) {
    const Input* const column = joinable->batch->columns[0];
    if (column == nullptr || !AddStrings(*column, joinable->rows(), &examples)) return false;
  }
  const Bytes added = examples[examples.size() - group.back()->rows()];
  examples.insert(examples.end(), added_rows, added);
  AddExamples(PlanOf(*group[0]->member), examples, request);
  return true;
}

// A member's own statistics, plus its share of those of the joined run.
ExpansionStats StatsOf(const Joinable& joinable, int64_t all_rows, const ExpansionStats& joined) {
  ExpansionStats stats = PlanOf(*joinable.member).expansion;
  stats.transcoded = joined.transcoded;
  stats.repeated_bytes = joined.repeated_bytes / all_rows * joinable.rows();
  return stats;
}

bool RunRows(const Programs& programs, const Group& group, int64_t added_rows, RunResult* result) {
  DecodedRequest examples;
  const TranscodedSignature* const transcoded = PlanOf(*group[0]->member).examples;
  if (transcoded != nullptr && SetExamples(group, added_rows, &examples) &&
      Transcoding::Answer(*transcoded, examples, result)) {
    return true;
  }
  StackedBatch stacked;
  return stacked.Stack(programs, BatchesOf(group), added_rows).ok() &&
         programs.Run(stacked.batch(), result).ok();
}

// Returns false if no member has been answered.
bool RunGroup(const Programs& programs, const Group& group, int64_t added_rows) {
  const int64_t rows = RowsOf(group);
  auto result = std::make_shared<RunResult>();
  if (!RunRows(programs, group, added_rows, result.get())) return false;
  if (!CheckRows(result->aliases, result->tensors, rows + added_rows).ok()) {
    programs.NeverJoin();
    return false;
  }
  int64_t first = 0;
  for (const Joinable* const joinable : group) {
    joinable->member->status = OkStatus();
    joinable->member->outputs = std::make_unique<TensorOutputs>(
        result, first, joinable->rows(), StatsOf(*joinable, rows, result->expansion));
    first += joinable->rows();
  }
  return true;
}

}  // namespace

int64_t RowsToAdd(const BatchRules& rules, int64_t rows) {
  const std::vector<int64_t>& allowed = rules.allowed_batch_sizes;
  const auto next = std::lower_bound(allowed.begin(), allowed.end(), rows);
  return next == allowed.end() ? 0 : *next - rows;
}

void RunJoined(absl::FunctionRef<void(BatchMember* member)> alone,
               absl::Span<BatchMember* const> members) {
  const Programs& programs = *PlanOf(*members[0]).programs;
  const BatchRules& rules = *PlanOf(*members[0]).rules;
  std::deque<Joinable> all;
  std::vector<Group> groups;
  for (BatchMember* const member : members) {
    Joinable& joinable = all.emplace_back();
    joinable.member = member;
    if (!MayJoin(programs, &joinable)) {
      alone(member);
      continue;
    }
    const auto fits = [&](const Group& group) {
      return Fit(programs.signature(), rules, *group[0], joinable);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    (found == groups.end() ? groups.emplace_back() : *found).push_back(&joinable);
  }
  for (const Group& group : groups) {
    const int64_t added_rows = RowsToAdd(rules, RowsOf(group));
    const bool is_run = group.size() > 1 || added_rows > 0;
    if (is_run && RunGroup(programs, group, added_rows)) continue;
    for (const Joinable* const joinable : group) alone(joinable->member);
  }
}

}  // namespace colcast::engine
