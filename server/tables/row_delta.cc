#include "server/tables/row_delta.h"

#include "server/wire/data_type.h"

namespace colcast::tables {
namespace {

// Overlays have 32-bit row indices.
constexpr int64_t kMostRows = int64_t{1} << 30;

}  // namespace

Status RowDelta::Read(Safetensors* file, RowDelta* delta) {
  const StoredTensor table = file->List("table", "U8"), ids = file->List("ids", "I64");
  const StoredTensor* const rows = file->Find("rows");
  if (rows == nullptr) file->Fail("there is no tensor \"rows\"");
  if (!file->ok()) return file->status();
  delta->table.assign(reinterpret_cast<const char*>(table.data), table.bytes);
  delta->ids = ids.values<int64_t>();
  for (size_t i = 0; i < delta->ids.size() && file->ok(); ++i) {
    const int64_t last = i == 0 ? -1 : delta->ids[i - 1];
    if (delta->ids[i] > last) continue;
    file->Fail("offset ", ids.offset + i * sizeof(int64_t), ": \"ids\"[", i, "] is ", delta->ids[i],
               ", expected more than ", last);
  }
  const auto count = static_cast<int64_t>(delta->ids.size());
  if (count == 0 || count > kMostRows) {
    file->Fail("header: ", count, " rows");
  } else if (rows->shape.empty() || rows->shape[0] != count || rows->bytes == 0) {
    file->Fail("tensor \"rows\" is ", rows->dtype, ShapeName(rows->shape),
               ", expected a row for each of ", count, " ids");
  }
  if (!file->ok()) return file->status();
  delta->dtype = rows->dtype;
  delta->shape = rows->shape;
  delta->rows = reinterpret_cast<const char*>(rows->data);
  delta->row_bytes = rows->bytes / count;
  return OkStatus();
}

}  // namespace colcast::tables
