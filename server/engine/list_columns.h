// The list columns of a signature, as the model's export recorded them.
#ifndef COLCAST_SERVER_ENGINE_LIST_COLUMNS_H_
#define COLCAST_SERVER_ENGINE_LIST_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/record/row_record.h"
#include "server/engine/wire_column.h"
#include "serving_patches/signature_inputs.h"

namespace colcast::engine {

class ListColumns {
 public:
  // None: what only looks like a list is padded to nothing.
  ListColumns() = default;
  ListColumns(const SignatureInputs& inputs, const RowRecord& record);

  // The position of the input that says how long each row of this one is: what follows is not read.
  // -1 if there is none.
  int LengthsOf(size_t input) const { return lengths_.empty() ? -1 : lengths_[input]; }

  // Whether the result depends on how far this one is padded.
  bool IsNeverPadded(size_t input) const { return !lengths_.empty() && never_padded_[input]; }

  // Positions of the lengths of whose greatest value in a run the result depends on.
  const std::vector<int>& own_lengths() const { return own_lengths_; }

  // Whether each column of these lengths has one value only. `columns` by the signature's input.
  bool HaveOneLength(absl::Span<const WireColumn* const> columns) const;

 private:
  std::vector<int> lengths_;  // by input
  std::vector<bool> never_padded_;
  std::vector<int> own_lengths_;
};

// Reads a column of lengths. False unless they are whole numbers that can be read.
bool ReadLengths(const WireColumn& column, std::vector<int64_t>* lengths);

// Whether all lengths of a column are the same. Those left out are.
bool HaveOneLength(const WireColumn* column);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_LIST_COLUMNS_H_
