// An embedding table whose rows are rounded, and read as floats.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "server/engine/rewrites/rounded_rows.h"

namespace colcast::engine {

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
