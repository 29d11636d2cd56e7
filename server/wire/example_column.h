// The values of one feature, collected Example by Example to become a request's columns.
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

// Feature is a oneof of three lists. TensorFlow's fast parser deviates from protobuf on merged
// messages, on bytes after a list and on wrong lengths. Such Features are refused here and left to
// TensorFlow; a Feature that is read has the same values in TensorFlow.
//
// Rows are added in ascending order, each at most once. As long as all rows have the bytes of row
// 0, only that row is stored; after the first row that differs, all are. Reusable.
class ExampleColumn {
 public:
  // Starts over with row 0 of `rows` rows. `feature` is a serialized Feature, empty if the Example
  // lacks it; its bytes must stay valid. Returns false if it cannot be read, or if it is required
  // and missing.
  bool Begin(const ExampleFeatures::Entry& entry, int64_t rows, std::string_view feature);

  // Adds `row` > 0 with these bytes. Returns false in the same cases as Begin().
  bool Set(int64_t row, std::string_view feature) {
    if (feature != first_) return SetOther(row, feature);
    SetSame(row);
    return true;
  }

  // Like Set(), for a caller that knows whether the bytes equal those of row 0.
  void SetSame(int64_t row) {
    if (rows_held_ > 1) Repeat(row, 1);
  }
  bool SetOther(int64_t row, std::string_view feature);

  // Stores all rows from now on, even if they have the same bytes.
  void HoldAll() {
    if (once()) HoldRows(rows_);
  }

  // Whether only row 0 is stored, because all rows so far have its bytes.
  bool once() const { return rows_held_ == 1; }

  // The number of elements in the columns, padding included.
  int64_t Elements() const;

  // The memory that this object keeps for its next use.
  size_t KeptBytes() const {
    return values_.capacity() + padded_.capacity() + lengths_.capacity() * sizeof(lengths_[0]) +
           ends_.capacity() * sizeof(ends_[0]);
  }

  // Pads the rows to the longest one and appends one or two columns, which point into this object.
  void Finish(std::vector<Column>* columns, size_t* count);

 private:
  void HoldRows(int64_t rows);  // stores row 0's values as the first `rows` rows
  bool Append(std::string_view feature, int64_t row);
  bool AppendMissing(int64_t row);
  void Repeat(int64_t row, int64_t times);  // stores row 0's values as `times` rows, from `row` on
  void Pad(int64_t longest);
  int64_t Longest() const;
  bool fixed() const { return entry_->feature.kind == FeatureKind::kFixedLen; }
  DataType dtype() const { return entry_->feature.dtype; }
  Column* AddColumn(std::string_view name, DataType dtype, std::vector<Column>* columns,
                    size_t* count);

  const ExampleFeatures::Entry* entry_ = nullptr;
  int64_t rows_ = 0;       // rows in the request
  int64_t rows_held_ = 0;  // 1 or rows_
  std::string_view first_;
  std::string values_;            // as AppendValues() writes them, row after row
  size_t first_size_ = 0;         // bytes of row 0 in values_
  std::vector<int64_t> lengths_;  // number of values in each row; not used for kFixedLen
  std::vector<size_t> ends_;      // where each row's bytes in values_ end; not used for kFixedLen
  std::string padded_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_EXAMPLE_COLUMN_H_
