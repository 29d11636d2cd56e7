// The embedding tables of one run of a grouped lookup.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/int8_table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// A matrix: what a tensor or a variable holds now, shared and not copied, or its int8 form.
struct LookupTable {
  tensorflow::Tensor values;              // without elements where there is an int8 form
  std::shared_ptr<const Int8Table> int8;  // may be null

  int64_t rows() const { return int8 ? int8->rows() : values.dim_size(0); }
  int64_t width() const { return int8 ? int8->width() : values.dim_size(1); }
};

// The variables of an op's tables, each found by its name once and not in every run. One that is
// destroyed is not kept.
class TableVariables {
 public:
  explicit TableVariables(size_t tables) : known_(tables) {}
  ~TableVariables();
  TableVariables(const TableVariables&) = delete;

  // The variable that `handle`, the input of a table, names. Any number of threads may ask at once.
  absl::Status Find(tensorflow::OpKernelContext* context, int table,
                    const tensorflow::Tensor& handle,
                    tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

 private:
  struct Known {
    tensorflow::Tensor handle;
    tensorflow::core::WeakPtr<tensorflow::Var> variable;
  };

  std::vector<std::atomic<Known*>> known_;  // set once; null: not yet found
};

// Those of an op's inputs `tables`, of the given type. `in_int8`: positions of variables whose int8
// form is wanted. INVALID_ARGUMENT for what is no matrix of that type.
absl::Status ReadLookupTables(tensorflow::OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> in_int8, TableVariables* variables,
                              std::vector<LookupTable>* tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
