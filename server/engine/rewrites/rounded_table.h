// An embedding table whose rows are stored in a smaller type and read as floats: in int8 with one
// scale per row (a quarter of the memory plus two bytes per row), or in bfloat16 (half of it).
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "tensorflow/core/framework/types.pb.h"

namespace colcast::engine {

// The widest instruction set to use.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

struct RoundedRows {
  // Rounds a row-major matrix to a type. DT_BFLOAT16: to nearest even, as TensorFlow casts.
  // DT_INT8: a value changes by at most 1/251 of the largest in its row; a row keeps its floats if
  // it has NaN or infinity, is too small for a scale, or if rounding its small values would lose
  // more than 2 % of the sum of all values but the largest (one value far above the others).
  static RoundedRows Of(tensorflow::DataType type, const float* values, int64_t rows, int64_t width,
                        Instructions instructions);

  tensorflow::DataType type;
  // Per row the values; in int8 after the scale, which is the upper half of a float.
  std::shared_ptr<const char> packed;
  // Rows of int8 that keep their floats; their scale is NaN.
  std::unordered_map<int64_t, std::vector<float>> kept;
};

class RoundedTable {
 public:
  // The rounded form of a row-major matrix. After construction only the address of `values` is
  // used: an id from Overlay::Redirect() that is not a row of the table refers to floats relative
  // to that address.
  RoundedTable(tensorflow::DataType type, const float* values, int64_t rows, int64_t width,
               Instructions instructions = WidestInstructions())
      : RoundedTable(values, rows, width, RoundedRows::Of(type, values, rows, width, instructions),
                     instructions) {}
  RoundedTable(const float* values, int64_t rows, int64_t width, RoundedRows rounded,
               Instructions instructions = WidestInstructions());

  // The number of values in a stored row of `width` floats, which includes the scale.
  static int64_t ValuesInRow(tensorflow::DataType type, int64_t width);

  // Whether the rows that keep their floats are exactly those without a scale.
  bool IsComplete() const;

  tensorflow::DataType type() const { return rounded_.type; }
  const float* values() const { return values_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  // Writes rows as floats; row i of the output is row ids[i] of the table.
  void Gather(absl::Span<const int64_t> ids, OutputRows output) const;

  // Sums rows as floats; each of the `rows` output rows is the sum of the same number of ids.
  void Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const;

 private:
  void SumOne(absl::Span<const int64_t> ids, float* sums) const;
  void SumWithFloats(absl::Span<const int64_t> ids, float* sums) const;
  bool IsChanged(int64_t id) const {
    return static_cast<uint64_t>(id) >= static_cast<uint64_t>(rows_);
  }
  bool IsKept(int64_t id) const;
  // Copies a row that is changed or kept; returns false for any other row.
  bool CopyFloats(int64_t id, float* row) const;
  void Prefetch(absl::Span<const int64_t> ids) const;

  const float* const values_;
  const int64_t rows_;
  const int64_t width_;
  const Instructions instructions_;
  const RoundedRows rounded_;
  const size_t row_bytes_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLE_H_
