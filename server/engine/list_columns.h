// The list columns of a signature, as recorded by the model's export.
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
  // For a signature without list columns.
  ListColumns() = default;
  ListColumns(const SignatureInputs& inputs, const RowRecord& record);

  // The position of the input that holds this list's lengths; values beyond a row's length are not
  // read. -1 if there is none.
  int LengthsOf(size_t input) const { return lengths_.empty() ? -1 : lengths_[input]; }

  // Whether this input holds the lengths of a list.
  bool IsLengths(size_t input) const { return !lengths_.empty() && is_lengths_[input]; }

  // Whether this input must not be padded, because results depend on its padding.
  bool IsNeverPadded(size_t input) const { return !lengths_.empty() && never_padded_[input]; }

  // Positions of the lengths of lists whose longest one in a run affects the results.
  const std::vector<int>& own_lengths() const { return own_lengths_; }

 private:
  std::vector<int> lengths_;  // per input
  std::vector<bool> is_lengths_;
  std::vector<bool> never_padded_;
  std::vector<int> own_lengths_;
};

// Reads a length column. Returns false unless it holds readable integers.
bool ReadLengths(const WireColumn& column, std::vector<int64_t>* lengths);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_LIST_COLUMNS_H_
