// Embedding tables whose rows are stored in int8 with one scale per row (a quarter of the memory
// plus two bytes per row), and read as floats.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace colcast::engine {

// The widest instruction set to use.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

struct Int8Rows {
  static constexpr int64_t kScaleBytes = 2;  // precede a row's values: the upper half of a float

  std::shared_ptr<const char> packed;
  // Rows that keep their floats; their scale is NaN.
  std::unordered_map<int64_t, std::vector<float>> kept;
};

class Int8Table {
 public:
  // The int8 form of a row-major matrix. Only the address of `values` is used: an id from
  // Overlay::Redirect() that is not a row of the table refers to floats relative to that address.
  Int8Table(const float* values, int64_t rows, int64_t width, Int8Rows packed,
            Instructions instructions = WidestInstructions());

  // Whether the rows that keep their floats are exactly those without a scale.
  bool IsComplete() const;

  const float* values() const { return values_; }
  const char* packed() const { return packed_.packed.get(); }
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
  const Int8Rows packed_;
  const size_t row_bytes_;
};

// The int8 tables of a session by the name of their variable in the default container.
class Int8Tables final : public tensorflow::ResourceBase {
 public:
  static absl::StatusOr<tensorflow::core::RefCountPtr<Int8Tables>> In(
      tensorflow::ResourceMgr* resources);

  // Returns NOT_FOUND if the variable has none.
  absl::StatusOr<std::shared_ptr<const Int8Table>> Find(const std::string& variable) const;
  void Add(const std::string& variable, std::shared_ptr<const Int8Table> table);
  void Remove(const std::string& variable);

  std::string DebugString() const override { return "int8 tables"; }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<const Int8Table>> tables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLE_H_
