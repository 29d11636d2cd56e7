#include "server/tables/row_delta.h"

#include "server/tables/checked_tensors.h"
#include "server/wire/data_type.h"

namespace colcast::tables {
namespace {

// Positions in an overlay have 32 bits.
constexpr int64_t kMostRows = int64_t{1} << 30;

}  // namespace

Status RowDelta::Read(std::string_view bytes, RowDelta* delta) {
  Safetensors read;
  if (Status status = ReadSafetensors(bytes, &read); !status.ok()) return status;
  std::string checksum;
  for (const Status& status :
       {ExpectText(read, "format", "colcast-rows"), ExpectText(read, "format_version", "1"),
        FindText(read, "checkpoint", &delta->checkpoint),
        FindNumber(read, "sequence", &delta->sequence), FindText(read, "checksum", &checksum)}) {
    if (!status.ok()) return status;
  }
  if (Status status = CheckData(read, checksum); !status.ok()) return status;
  const StoredTensor* table = nullptr;
  const StoredTensor* ids = nullptr;
  if (Status status = FindList(read, "table", "U8", &table); !status.ok()) return status;
  if (Status status = FindList(read, "ids", "I64", &ids); !status.ok()) return status;
  delta->table.assign(reinterpret_cast<const char*>(table->data), table->bytes);
  delta->ids = ids->values<int64_t>();
  for (size_t i = 0; i < delta->ids.size(); ++i) {
    if (delta->ids[i] > (i == 0 ? -1 : delta->ids[i - 1])) continue;
    return Wrong("offset ", ids->offset + i * sizeof(int64_t), ": \"ids\"[", i, "] is ",
                 delta->ids[i], ", expected more than ", i == 0 ? -1 : delta->ids[i - 1]);
  }
  const auto count = static_cast<int64_t>(delta->ids.size());
  const auto rows = read.tensors.find("rows");
  if (count == 0 || count > kMostRows) return Wrong("header: ", count, " rows");
  if (rows == read.tensors.end()) return Wrong("there is no tensor \"rows\"");
  if (rows->second.shape.empty() || rows->second.shape[0] != count || rows->second.bytes == 0) {
    return Wrong("tensor \"rows\" is ", rows->second.dtype, ShapeName(rows->second.shape),
                 ", expected a row for each of ", count, " ids");
  }
  delta->dtype = rows->second.dtype;
  delta->shape = rows->second.shape;
  delta->rows = reinterpret_cast<const char*>(rows->second.data);
  delta->row_bytes = rows->second.bytes / count;
  return OkStatus();
}

}  // namespace colcast::tables
