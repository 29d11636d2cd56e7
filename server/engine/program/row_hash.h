// From the columns that rows are computed from to the keys under which what is computed is kept.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/signature.h"
#include "server/engine/wire_column.h"
#include "server/states/key.h"
#include "server/states/row_keys.h"

namespace colcast::engine {

// Whether a column has a value for each of `rows` rows; if not, it was left out or all share it.
bool HasRows(const DeclaredInput& input, const WireColumn* column, int64_t rows);

// What a row's key covers.
struct HashedColumns {
  const Signature& signature;
  absl::Span<const int> inputs;                 // the signature's, always in the same order
  absl::Span<const WireColumn* const> columns;  // by the signature's input; null: left out
  int64_t rows;
  // Whether padding is a part of the row: what is computed has its shape.
  bool padding_counts;
};

// A thread keeps one and uses it again.
struct RowHash {
  states::RowKeys row_keys;
  std::vector<int> places;  // by the signature's input: in row_keys if it has rows, or -1
  std::vector<int64_t> lengths;

  // Sets `*keys` to one for each row. False if a value is malformed.
  bool MakeKeys(const HashedColumns& hashed, const states::KeyHash& hash,
                std::vector<states::Key>* keys);

 private:
  const int64_t* LengthsOf(const HashedColumns& hashed, int input);
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_
