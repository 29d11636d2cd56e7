// Makes cache keys of rows from their columns.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/input.h"
#include "server/engine/signature.h"
#include "server/states/key.h"
#include "server/states/row_keys.h"

namespace colcast::engine {

// Whether a column has its own value for each of `rows` rows, rather than being left out or shared
// by all.
bool HasRows(const DeclaredInput& input, const Input* column, int64_t rows);

// What a row's key covers.
struct HashedColumns {
  const Signature& signature;
  absl::Span<const int> inputs;            // inputs of the signature, always in the same order
  absl::Span<const Input* const> columns;  // by the signature's input; null if left out
  int64_t rows;
  // Whether padding is part of the key: true if it determines the shape of the result.
  bool padding_counts;
};

// Each thread reuses one.
struct RowHash {
  states::RowKeys row_keys;
  // For each of the signature's inputs: its index in row_keys if it has rows, else -1.
  std::vector<int> places;
  std::vector<int64_t> lengths;

  // Sets `*keys` to one key per row. Returns false if a value is malformed.
  bool MakeKeys(const HashedColumns& hashed, const states::KeyHash& hash,
                std::vector<states::Key>* keys);

 private:
  const int64_t* LengthsOf(const HashedColumns& hashed, int input);
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_ROW_HASH_H_
