#include "server/engine/list_columns.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/wire/tensor_values.h"

namespace colcast::engine {

ListColumns::ListColumns(const SignatureInputs& inputs, const RowRecord& record)
    : lengths_(inputs.inputs().size(), -1),
      is_lengths_(inputs.inputs().size(), false),
      never_padded_(inputs.inputs().size(), false) {
  const auto lengths_of = [&inputs](const std::string& list) {
    const int lengths = inputs.Find(absl::StrCat(list, "/length"));
    const bool are_numbers = lengths >= 0 && inputs.inputs()[lengths].dtype == tensorflow::DT_INT64;
    return are_numbers ? lengths : -1;
  };
  for (const std::string& list : record.lists) {
    const int position = inputs.Find(list);
    if (position < 0) continue;
    lengths_[position] = lengths_of(list);
    if (lengths_[position] >= 0) is_lengths_[lengths_[position]] = true;
  }
  for (const std::string& list : record.own_length) {
    const int position = inputs.Find(list);
    // An input may be named like a list's lengths without holding them.
    const bool has_lengths = std::count(record.lists.begin(), record.lists.end(), list) > 0;
    if (has_lengths && lengths_of(list) >= 0) {
      own_lengths_.push_back(lengths_of(list));
    } else if (position >= 0) {
      never_padded_[position] = true;
    }
  }
}

bool ReadLengths(const WireColumn& column, std::vector<int64_t>* lengths) {
  if (column.dtype() != tensorflow::DT_INT64) return false;
  lengths->resize(column.count());
  return CopyValues(column.column(), column.count(), lengths->data()).ok();
}

}  // namespace colcast::engine
