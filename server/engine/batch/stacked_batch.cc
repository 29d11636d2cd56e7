#include "server/engine/batch/stacked_batch.h"

#include <algorithm>
#include <utility>

#include "server/engine/program/domains.h"
#include "server/engine/rows.h"
#include "server/wire/column.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// Returns the row of a domain that a candidate reads.
int64_t RowOf(const Batch::Domain& domain, int64_t candidate) {
  if (domain.has_index()) return RowsIn(domain.index)[candidate];
  return domain.rows == 1 ? 0 : candidate;
}

// Returns the bytes per row of a left-out input's default value.
double BytesOfDefault(const DeclaredInput& input) {
  auto bytes = static_cast<double>(ElementBytes(input.default_dtype));
  for (size_t d = 1; d < input.default_dims.size(); ++d) bytes *= input.default_dims[d];
  return bytes;
}

absl::Status CheckRows(const Batch& batch, int64_t most) {
  int64_t rows = batch.candidates;
  for (const Batch::Domain& domain : batch.domains) rows = std::max(rows, domain.rows);
  if (rows <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError("the joined requests would have too many rows");
}

}  // namespace

absl::Status StackedBatch::Stack(const Programs& programs, Members members, int64_t added_rows) {
  const Signature& signature = programs.signature();
  batch_.candidates = added_rows;
  for (const Batch* const member : members) batch_.candidates += member->candidates;
  batch_.of_several = true;
  batch_.outputs = members[0]->outputs;
  batch_.domains.resize(members[0]->domains.size());
  for (size_t i = 0; i < batch_.domains.size(); ++i) SetDomain(i, members, added_rows);
  batch_.form = batch_.has_index(Batch::kUser) ? Batch::Form::kIndexed : Batch::Form::kRows;
  absl::Status status = CheckRows(batch_, signature.inputs().limits().max_rows);
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  columns_.assign(inputs.size(), nullptr);
  batch_.columns = columns_;
  double extra_bytes = 0;
  for (size_t i = 0; i < inputs.size() && status.ok(); ++i) {
    const bool is_sent = members[0]->columns[i] != nullptr;
    const PadWith pad =
        signature.lists().LengthsOf(i) >= 0 ? PadWith::kZeros : PadWith::kFirstValue;
    std::vector<RowBlock> blocks;
    if (is_sent) blocks = BlocksOf(i, programs.domains().domain_of(i), members, added_rows);
    extra_bytes += is_sent ? ExtraBytes(blocks, pad)
                           : BytesOfDefault(inputs[i]) * static_cast<double>(batch_.candidates);
    if (extra_bytes > static_cast<double>(signature.inputs().limits().max_expanded_bytes)) {
      return absl::ResourceExhaustedError("the joined columns would take too many bytes");
    }
    if (!is_sent) continue;
    Tensor rows;
    status = StackRows(blocks, pad, &rows);
    if (status.ok()) columns_[i] = &inputs_.emplace_back(inputs[i].alias, std::move(rows));
  }
  return status;
}

// If candidate i reads row i in every member, the same holds for the stacked batch, which then
// needs no index.
void StackedBatch::SetDomain(size_t domain, Members members, int64_t added_rows) {
  const auto has_row_for_each = [domain](const Batch* member) {
    const Batch::Domain& own = member->domains[domain];
    return !own.has_index() && own.rows == member->candidates;
  };
  Batch::Domain& all = batch_.domains[domain];
  all.index = Tensor();
  if (domain != Batch::kUser && std::all_of(members.begin(), members.end(), has_row_for_each)) {
    all.rows = batch_.candidates;
    return;
  }
  all.rows = 0;
  all.index = Tensor(tensorflow::DT_INT64, tensorflow::TensorShape({batch_.candidates}));
  auto* next = static_cast<int64_t*>(all.index.data());
  int64_t first = 0;
  for (const Batch* const member : members) {
    const Batch::Domain& own = member->domains[domain];
    for (int64_t i = 0; i < member->candidates; ++i) *next++ = all.rows + RowOf(own, i);
    first = all.rows + RowOf(own, 0);
    all.rows += own.rows;
  }
  std::fill_n(next, added_rows, first);
}

std::vector<RowBlock> StackedBatch::BlocksOf(size_t input, int domain, Members members,
                                             int64_t added_rows) const {
  const bool has_index = batch_.has_index(domain);
  std::vector<RowBlock> blocks;
  blocks.reserve(members.size() + 1);
  for (const Batch* const member : members) {
    blocks.push_back(AllRows(*member->columns[input],
                             has_index ? member->domains[domain].rows : member->candidates));
  }
  if (added_rows > 0 && !has_index) {
    blocks.push_back({members.back()->columns[input], 0, added_rows, true});
  }
  return blocks;
}

bool AddStrings(const Input& column, int64_t rows, std::vector<Bytes>* strings) {
  const bool has_rows = column.count() == rows || column.count() == 1;
  if (column.dtype() != tensorflow::DT_STRING || column.dims().size() != 1 || !has_rows) {
    return false;
  }
  if (!colcast::AddStrings(column.column(), column.count(), strings).ok()) return false;
  if (column.count() != rows) strings->insert(strings->end(), rows - 1, Bytes(strings->back()));
  return true;
}

void AddExamples(const RequestPlan& like, absl::Span<const Bytes> strings,
                 DecodedRequest* request) {
  request->output_filter = like.request->output_filter;
  Column* const column = request->AddColumn(like.programs->signature().inputs().inputs()[0].alias);
  column->dtype = DT_STRING;
  column->dims = {static_cast<int64_t>(strings.size())};
  column->values.strings.assign(strings.begin(), strings.end());
  column->values.count = column->dims[0];
}

}  // namespace colcast::engine
