// The embedding tables of one run of a grouped lookup.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/int8_table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// A matrix: what a tensor or a variable holds now, shared and not copied, or its int8 form.
struct LookupTable {
  tensorflow::Tensor values;              // without elements where there is an int8 form
  std::shared_ptr<const Int8Table> int8;  // may be null

  int64_t rows() const { return int8 ? int8->rows() : values.dim_size(0); }
  int64_t width() const { return int8 ? int8->width() : values.dim_size(1); }
};

// Those of an op's inputs `tables`, of the given type. `in_int8`: positions of variables whose int8
// form is wanted. INVALID_ARGUMENT for what is no matrix of that type.
absl::Status ReadLookupTables(tensorflow::OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> in_int8, std::vector<LookupTable>* tables);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_TABLES_H_
