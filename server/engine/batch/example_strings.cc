#include "server/engine/batch/example_strings.h"

#include "server/wire/column.h"

namespace colcast::engine {

bool AddStrings(const Input& column, int64_t rows, std::vector<Bytes>* strings) {
  const bool has_rows = column.count() == rows || column.count() == 1;
  if (column.dtype() != tensorflow::DT_STRING || column.dims().size() != 1 || !has_rows) {
    return false;
  }
  if (!colcast::AddStrings(column.column(), column.count(), strings).ok()) return false;
  if (column.count() != rows) strings->insert(strings->end(), rows - 1, Bytes(strings->back()));
  return true;
}

void AddExamples(const Signature& signature, absl::Span<const Bytes> strings,
                 DecodedRequest* request) {
  Column* const column = request->AddColumn(signature.inputs().inputs()[0].alias);
  column->dtype = DT_STRING;
  column->dims = {static_cast<int64_t>(strings.size())};
  column->values.strings.assign(strings.begin(), strings.end());
  column->values.count = column->dims[0];
}

}  // namespace colcast::engine
