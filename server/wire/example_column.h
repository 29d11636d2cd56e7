// The values of one feature, Example by Example, on their way to the columns of a request.
#ifndef COLCAST_SERVER_WIRE_EXAMPLE_COLUMN_H_
#define COLCAST_SERVER_WIRE_EXAMPLE_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/example_features.h"
#include "server/wire/predict_request.h"

namespace colcast {

// Rows come in order, each at most once. As long as all of them have the bytes of the first, it
// holds that one row only; the first row that differs makes it hold all. Made to be reused.
class ExampleColumn {
 public:
  // Begins anew with row 0, of `rows` in all. `feature`: serialized, empty if the Example has none
  // or an empty one; its bytes must stay. False if it cannot be read or is required and missing.
  bool Begin(const ExampleFeatures::Entry& entry, int64_t rows, std::string_view feature);

  // Row `row` > 0 has these bytes; false as Begin().
  bool Set(int64_t row, std::string_view feature) {
    if (feature != first_) return SetOther(row, feature);
    SetSame(row);
    return true;
  }

  // The same where it is known already whether the bytes are those of row 0.
  void SetSame(int64_t row) {
    if (rows_held_ > 1) Repeat(row, 1);
  }
  bool SetOther(int64_t row, std::string_view feature);

  // Holds all rows from now on, even if they have the same bytes.
  void HoldAll() {
    if (once()) HoldRows(rows_);
  }

  // Whether all rows up to now have the same bytes.
  bool once() const { return rows_held_ == 1; }

  // Elements of its columns, padding included.
  int64_t Elements() const;

  // Pads the rows to the longest and appends one or two columns that point into this object.
  void Finish(std::vector<Column>* columns, size_t* count);

 private:
  void HoldRows(int64_t rows);  // row 0's values as the first `rows`, of which more may follow
  bool Append(std::string_view feature, int64_t row);
  bool AppendMissing(int64_t row);
  void Repeat(int64_t row, int64_t times);  // row 0's values as `times` rows from `row` on
  void Pad(int64_t longest);
  int64_t Longest() const;
  bool fixed() const { return entry_->feature.kind == FeatureKind::kFixedLen; }
  DataType dtype() const { return entry_->feature.dtype; }
  Column* AddColumn(std::string_view name, DataType dtype, std::vector<Column>* columns,
                    size_t* count);

  const ExampleFeatures::Entry* entry_ = nullptr;
  int64_t rows_ = 0;       // of the request
  int64_t rows_held_ = 0;  // 1 or rows_
  std::string_view first_;
  std::string values_;            // as AppendValues() gives them, row after row
  size_t first_size_ = 0;         // bytes in it of row 0
  std::vector<int64_t> lengths_;  // values of each row; unless kFixedLen
  std::vector<size_t> ends_;      // where each row's bytes in values_ end; unless kFixedLen
  std::string padded_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_COLUMN_H_
