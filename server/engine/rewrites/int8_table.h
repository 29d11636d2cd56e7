// An embedding table in int8 with a scale for each row: a quarter of the memory and two bytes a
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

// The widest instructions that are used.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

class Int8Table {
 public:
  // Rounds a row-major matrix. A value moves by at most 1/251 of the largest of its row. Rows keep
  // their bits that have NaN or infinity, are too small for a scale, or whose small values would
  // lose more than 2 % of the sum of all but the largest, which is far above them.
  Int8Table(const float* values, int64_t rows, int64_t width,
            Instructions instructions = WidestInstructions());

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  // Writes the rows as floats; row i of the output is row ids[i] of the table.
  void Gather(absl::Span<const int64_t> ids, OutputRows output) const;

  // Sums rows as floats; each of the output's `rows` has as many ids.
  void Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const;

 private:
  // Writes the sum of the rows that `ids` name.
  void SumOne(absl::Span<const int64_t> ids, float* sums) const;
  void SumWithKept(absl::Span<const int64_t> ids, float* sums) const;
  bool IsKept(int64_t id) const;
  void Prefetch(absl::Span<const int64_t> ids) const;

  const int64_t rows_;
  const int64_t width_;
  const size_t row_bytes_;
  const Instructions instructions_;
  std::unique_ptr<char[]> packed_;  // by row: the scale, the upper half of a float; the values
  std::unordered_map<int64_t, std::vector<float>> kept_;  // rows whose scale is NaN
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_
