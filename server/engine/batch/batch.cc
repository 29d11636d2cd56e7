#include "server/engine/batch/batch.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/numeric/bits.h"
#include "server/engine/row_index.h"
#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/engine/tensor_outputs.h"
#include "server/wire/column_rows.h"

namespace colcast::engine {
namespace {

// A member of which nothing is known to be wrong.
struct Planned : PlannedRequest {
  BatchMember* member = nullptr;
  std::vector<int64_t> own_lengths;  // the greatest of each column of them; -1 if it was left out
};
using Group = std::vector<const Planned*>;

// Lengths that may be padded to one another without more than about doubling.
int64_t Bucket(int64_t length) {
  constexpr int64_t kShort = 8;
  return length <= kShort ? 0 : absl::bit_width(static_cast<uint64_t>(length - 1));
}

// Whether columns of these shapes may lie in one, apart from their rows.
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

// Whether two requests may run together. Their dtypes are those declared.
bool Fit(const Signature& signature, const BatchRules& rules, const Planned& a, const Planned& b) {
  if (a.outputs != b.outputs || a.own_lengths != b.own_lengths) return false;
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (a.sent(i) != b.sent(i)) return false;
    if (!a.sent(i)) continue;
    const absl::Span<const int64_t> dims = a.column(i).dims();
    if (dims.size() == 1 && b.column(i).dims().size() == 1) continue;
    const bool has_lengths = signature.lists().LengthsOf(i) >= 0;
    const bool pad_any = rules.pad_variable_length_inputs && !signature.lists().IsNeverPadded(i);
    if (!DimsFit(dims, b.column(i).dims(), has_lengths, pad_any)) {
      return false;
    }
  }
  return true;
}

// The rows have to be there: a column of none, or one without rows, goes alone.
bool HasRows(const Signature& signature, const Planned& planned) {
  if (planned.rows() == 0) return false;
  for (size_t i = 0; i < signature.inputs().inputs().size(); ++i) {
    if (!planned.sent(i)) continue;
    const absl::Span<const int64_t> dims = planned.column(i).dims();
    if (dims.empty() || (dims[0] != 1 && dims[0] != planned.rows())) return false;
  }
  return true;
}

// Whether the lists of a member are as long as they say, so that what is padded to them is not
// read. Sets its own lengths.
bool ReadLists(const Signature& signature, Planned* planned) {
  thread_local std::vector<int64_t> lengths;
  const ListColumns& lists = signature.lists();
  for (size_t i = 0; i < signature.inputs().inputs().size(); ++i) {
    const int place = lists.LengthsOf(i);
    if (place < 0 || !planned->sent(i) || !planned->sent(place)) continue;
    const absl::Span<const int64_t> dims = planned->column(i).dims();
    if (dims.size() < 2 || !ReadLengths(planned->column(place), &lengths)) return false;
    const auto is_too_long = [&dims](int64_t length) { return length > dims[1]; };
    if (std::any_of(lengths.begin(), lengths.end(), is_too_long)) return false;
  }
  planned->own_lengths.clear();
  for (const int place : lists.own_lengths()) {
    int64_t& longest = planned->own_lengths.emplace_back(-1);
    if (!planned->sent(place)) continue;
    if (!ReadLengths(planned->column(place), &lengths)) return false;
    for (const int64_t length : lengths) longest = std::max({longest, length, int64_t{0}});
  }
  return true;
}

int64_t RowsOf(const Group& group) {
  int64_t rows = 0;
  for (const Planned* const planned : group) rows += planned->rows();
  return rows;
}

void AddRowToUser(const Group& group, int64_t added_rows, DecodedRequest* request) {
  const int64_t rows = RowsOf(group) + added_rows;
  std::string bytes(rows * sizeof(int64_t), '\0');
  auto* at = reinterpret_cast<int64_t*>(bytes.data());
  for (size_t user = 0; user < group.size(); ++user) {
    const bool is_last = user + 1 == group.size();
    const int64_t rows_of_user = group[user]->rows() + (is_last ? added_rows : 0);
    at = std::fill_n(at, rows_of_user, static_cast<int64_t>(user));
  }
  Column* const column = request->AddColumn(kRowToUser);
  column->dtype = DT_INT64;
  column->dims = {rows};
  column->values.tensor_content = Bytes(request->Keep(std::move(bytes)));
}

// User columns get a row per member, all others the members' rows one after the other.
void SetBlocks(const Signature& signature, const Group& group, size_t input, int64_t added_rows,
               std::vector<RowBlock>* blocks) {
  const bool is_user = !signature.inputs().inputs()[input].batched();
  blocks->clear();
  for (const Planned* const planned : group) {
    const WireColumn& column = planned->column(input);
    blocks->push_back({&column.column(), column.count(), is_user ? 1 : planned->rows()});
  }
  if (added_rows > 0 && !is_user) {
    blocks->push_back(blocks->back());
    blocks->back().rows = added_rows;
    blocks->back().first_row_only = true;
  }
}

// What a joined column takes beyond what was sent: padding above all.
double ExtraBytes(const Group& group, size_t input, const std::vector<RowBlock>& blocks) {
  double bytes = JoinedBytes(blocks);
  for (const Planned* const planned : group) {
    bytes -= static_cast<double>(planned->column(input).WireBytes());
  }
  return bytes;
}

Status Join(const Programs& programs, const Group& group, int64_t added_rows,
            DecodedRequest* request) {
  thread_local std::vector<RowBlock> blocks;
  const DecodedRequest& first = *group[0]->member->request;
  request->Clear();
  request->mutable_model_spec()->signature_name = first.model_spec().signature_name;
  *request->mutable_output_filter() = first.output_filter();
  const absl::Span<const DeclaredInput> inputs = programs.signature().inputs().inputs();
  double extra_bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!group[0]->sent(i)) continue;
    SetBlocks(programs.signature(), group, i, added_rows, &blocks);
    extra_bytes += ExtraBytes(group, i, blocks);
    if (extra_bytes > static_cast<double>(programs.signature().max_expanded_bytes())) {
      return ResourceExhausted("joined, the columns would take too many bytes");
    }
    const PadWith pad =
        programs.signature().lists().LengthsOf(i) >= 0 ? PadWith::kZeros : PadWith::kFirstValue;
    const Status status = JoinRows(inputs[i].alias, blocks, pad, request);
    if (!status.ok()) return status;
  }
  if (programs.has_users()) AddRowToUser(group, added_rows, request);
  return OkStatus();
}

// The joined run's share of one member.
ExpansionStats StatsOf(const Planned& planned, int64_t all_rows, const ExpansionStats& joined) {
  ExpansionStats stats = planned.Expansion();
  stats.transcoded = joined.transcoded;
  stats.repeated_bytes = joined.repeated_bytes / all_rows * planned.rows();
  return stats;
}

// False if nothing has been answered.
bool RunJoined(const Programs& programs, const BatchRules& rules, const BatchRuns& runs,
               const Group& group) {
  thread_local DecodedRequest request;
  const int64_t rows = RowsOf(group);
  const int64_t added_rows = RowsToAdd(rules, rows);
  auto result = std::make_shared<RunResult>();
  const bool done =
      Join(programs, group, added_rows, &request).ok() && runs.joined(request, result.get()).ok();
  request.Clear();
  if (!done) return false;
  if (!CheckRows(result->aliases, result->tensors, rows + added_rows).ok()) {
    programs.NeverJoin();
    return false;
  }
  int64_t first = 0;
  for (const Planned* const planned : group) {
    planned->member->status = OkStatus();
    planned->member->outputs = std::make_unique<TensorOutputs>(
        result, first, planned->rows(), StatsOf(*planned, rows, result->expansion));
    first += planned->rows();
  }
  return true;
}

}  // namespace

int64_t RowsToAdd(const BatchRules& rules, int64_t rows) {
  const std::vector<int64_t>& allowed = rules.allowed_batch_sizes;
  const auto next = std::lower_bound(allowed.begin(), allowed.end(), rows);
  return next == allowed.end() ? 0 : *next - rows;
}

void RunBatch(const Programs& programs, const BatchRules& rules, const BatchRuns& runs,
              absl::Span<BatchMember* const> members) {
  // Made again for every run, it would have to find all inputs by their names.
  thread_local std::deque<Planned> all;
  if (all.size() < members.size()) all.resize(members.size());
  std::vector<Group> groups;
  for (size_t i = 0; i < members.size(); ++i) {
    Planned& planned = all[i];
    planned.member = members[i];
    const DecodedRequest& request = *members[i]->request;
    if (!programs.signature().Receive(request, &planned).ok() ||
        !programs.signature().Plan(&planned).ok() || !HasRows(programs.signature(), planned) ||
        !ReadLists(programs.signature(), &planned)) {
      runs.alone(members[i]);
      planned = Planned();  // it may be of any size
      continue;
    }
    const auto fits = [&](const Group& group) {
      return Fit(programs.signature(), rules, *group[0], planned);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    (found == groups.end() ? groups.emplace_back() : *found).push_back(&planned);
  }
  for (const Group& group : groups) {
    const bool is_run = group.size() > 1 || RowsToAdd(rules, RowsOf(group)) > 0;
    if (is_run && RunJoined(programs, rules, runs, group)) continue;
    for (const Planned* const planned : group) runs.alone(planned->member);
  }
}

}  // namespace colcast::engine
