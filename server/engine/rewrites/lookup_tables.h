// The embedding tables in one run of a grouped lookup.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/int8_table.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// A matrix: the current value of a tensor or variable, shared rather than copied, or its int8
// form.
struct LookupTable {
  tensorflow::Tensor values;                 // no elements if there is an int8 form
  std::shared_ptr<const Int8Table> int8;     // may be null
  const tables::Overlay* changed = nullptr;  // its rows changed by deltas; may be null

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

  // The variable that `handle`, an input of the op, refers to. May be called from any thread.
  absl::Status Find(tensorflow::OpKernelContext* context, int table,
                    const tensorflow::Tensor& handle,
                    tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

 private:
  struct Known {
    tensorflow::Tensor handle;
    tensorflow::core::WeakPtr<tensorflow::Var> variable;
  };

  std::vector<std::atomic<Known*>> known_;  // set once; null until found
};

// Reads the tables among the op's inputs. `int8` lists the positions of variables to be read in
// int8. Returns INVALID_ARGUMENT for a table that is not a matrix of `type`.
absl::Status ReadLookupTables(tensorflow::OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> int8, TableVariables* variables,
                              std::vector<LookupTable>* tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
