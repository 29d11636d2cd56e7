#include "server/engine/program/row_hash.h"

namespace colcast::engine {

bool HasRows(const DeclaredInput& input, const Input* column, int64_t rows) {
  return column != nullptr && input.batched() && !column->dims().empty() &&
         column->dims()[0] == rows;
}

bool RowHash::MakeKeys(const HashedColumns& hashed, const states::KeyHash& hash,
                       std::vector<states::Key>* keys) {
  const absl::Span<const DeclaredInput> inputs = hashed.signature.inputs().inputs();
  row_keys.Begin(hashed.rows, hash);
  places.assign(hashed.columns.size(), -1);
  int next = 0;
  for (const int input : hashed.inputs) {
    const Input* const column = hashed.columns[input];
    if (column == nullptr) {
      row_keys.AddAbsent();
    } else if (HasRows(inputs[input], column, hashed.rows)) {
      places[input] = next++;
      const int64_t* const own = hashed.padding_counts ? nullptr : LengthsOf(hashed, input);
      if (!row_keys.AddRows(column->column(), column->count(), own).ok()) return false;
    } else {
      row_keys.AddShared(column->column());
    }
  }
  row_keys.Finish(keys);
  return true;
}

// Returns null if the column has no lengths that fit it; then every value is part of the key.
const int64_t* RowHash::LengthsOf(const HashedColumns& hashed, int input) {
  const int place = hashed.signature.lists().LengthsOf(input);
  const Input* const column = place < 0 ? nullptr : hashed.columns[place];
  const absl::Span<const int64_t> dims = hashed.columns[input]->dims();
  if (column == nullptr || column->dims() != dims.first(1) || dims.size() < 2) return nullptr;
  if (!ReadLengths(*column, &lengths)) return nullptr;
  for (const int64_t length : lengths) {
    if (length < 0 || length > dims[1]) return nullptr;
  }
  return lengths.data();
}

}  // namespace colcast::engine
