// The embedding tables that grouped lookups read, as floats or in int8.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// The widest instruction set to use.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

// Rows of a table in int8, with one scale per row: a quarter of the memory plus two bytes per row.
struct Int8Rows {
  // The size of a row's scale, which is stored before its values as the upper half of a float.
  static constexpr int64_t kScaleBytes = 2;

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

  // Whether floats are kept for exactly the rows whose scale is NaN.
  bool IsComplete() const;

  const float* values() const { return values_; }
  const char* packed() const { return packed_.packed.get(); }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  // Writes rows as floats; row i of the output is row ids[i] of the table.
  void Gather(absl::Span<const int64_t> ids, OutputRows output) const;

  // Like Gather(), but each of `rows` output rows sums the rows of equally many consecutive ids.
  void Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const;

 private:
  void SumOne(absl::Span<const int64_t> ids, float* sums) const;
  void SumWithFloats(absl::Span<const int64_t> ids, float* sums) const;
  bool IsChanged(int64_t id) const {
    return static_cast<uint64_t>(id) >= static_cast<uint64_t>(rows_);
  }
  bool IsKept(int64_t id) const;
  // Copies the row if a delta changed it or its floats are kept; otherwise returns false.
  bool CopyFloats(int64_t id, float* row) const;
  void Prefetch(absl::Span<const int64_t> ids) const;

  const float* const values_;
  const int64_t rows_;
  const int64_t width_;
  const Instructions instructions_;
  const Int8Rows packed_;
  const size_t row_bytes_;
};

// A session's int8 tables, by their variables' names in the default container.
class Int8Tables final : public tensorflow::ResourceBase {
 public:
  static absl::StatusOr<tensorflow::core::RefCountPtr<Int8Tables>> In(
      tensorflow::ResourceMgr* resources);

  // Returns NOT_FOUND if the variable has no int8 table.
  absl::StatusOr<std::shared_ptr<const Int8Table>> Find(const std::string& variable) const;
  void Add(const std::string& variable, std::shared_ptr<const Int8Table> table);
  void Remove(const std::string& variable);

  std::string DebugString() const override { return "int8 tables"; }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<const Int8Table>> tables_;
};

// A table to read: the current value of a tensor or variable, shared rather than copied, or its
// int8 form.
struct LookupTable {
  tensorflow::Tensor values;                 // no elements if there is an int8 form
  std::shared_ptr<const Int8Table> int8;     // may be null
  const tables::Overlay* changed = nullptr;  // the rows that deltas changed; may be null

  int64_t rows() const { return int8 ? int8->rows() : values.dim_size(0); }
  int64_t width() const { return int8 ? int8->width() : values.dim_size(1); }
};

// The variables of an op's tables, found by name once instead of in every run. Does not keep a
// destroyed variable alive.
class TableVariables {
 public:
  explicit TableVariables(size_t tables) : known_(tables) {}
  ~TableVariables();
  TableVariables(const TableVariables&) = delete;

  // Sets `*values` to a table: `input` itself or, if that is a variable's handle, the variable's
  // current value. May be called from any thread.
  absl::Status Read(tensorflow::OpKernelContext* context, int table,
                    const tensorflow::Tensor& input, tensorflow::Tensor* values);

 private:
  absl::Status Find(tensorflow::OpKernelContext* context, int table,
                    const tensorflow::Tensor& handle,
                    tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

  struct Known {
    tensorflow::Tensor handle;
    tensorflow::core::WeakPtr<tensorflow::Var> variable;
  };

  std::vector<std::atomic<Known*>> known_;  // set once; null until found
};

// Returns Gather's error, INVALID_ARGUMENT naming the node and the first of `ids` that is not in
// [0, rows). `ids` begin at position `first` of a tensor of this shape.
absl::Status CheckIds(absl::Span<const int64_t> ids, int64_t rows,
                      const tensorflow::TensorShape& shape, int64_t first, std::string_view node);

// Reads the tables among the op's inputs. `int8` lists the positions of variables to be read in
// int8. Returns INVALID_ARGUMENT for a table that is not a matrix of `type`.
absl::Status ReadLookupTables(tensorflow::OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> int8, TableVariables* variables,
                              std::vector<LookupTable>* tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
