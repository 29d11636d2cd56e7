// An embedding table in int8 with one scale per row: a quarter of the memory plus two bytes per
// row.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"

namespace colcast::engine {

// The widest instruction set to use.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

class Int8Table {
 public:
  // Rounds a row-major matrix. A value changes by at most 1/251 of the largest in its row. A row
  // keeps its floats if it has NaN or infinity, is too small for a scale, or if rounding its small
  // values would lose more than 2 % of the sum of all values but the largest (one value far above
  // the others).
  Int8Table(const float* values, int64_t rows, int64_t width,
            Instructions instructions = WidestInstructions());

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  // Writes rows as floats; row i of the output is row ids[i] of the table.
  void Gather(absl::Span<const int64_t> ids, OutputRows output) const;

  // Sums rows as floats; each of the output's `rows` sums the same number of ids.
  void Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const;

 private:
  // Writes the sum of the rows in `ids`.
  void SumOne(absl::Span<const int64_t> ids, float* sums) const;
  void SumWithKept(absl::Span<const int64_t> ids, float* sums) const;
  bool IsKept(int64_t id) const;
  void Prefetch(absl::Span<const int64_t> ids) const;

  const int64_t rows_;
  const int64_t width_;
  const size_t row_bytes_;
  const Instructions instructions_;
  // Per row: the scale (the upper half of a float), then the values.
  std::unique_ptr<char[]> packed_;
  // Rows that keep their floats; their scale is NaN.
  std::unordered_map<int64_t, std::vector<float>> kept_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_
