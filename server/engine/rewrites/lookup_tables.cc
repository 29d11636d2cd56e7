#include "server/engine/rewrites/lookup_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/int8_tables.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// `int8`: where its int8 form is; null if that is not wanted.
absl::Status ReadVariable(OpKernelContext* context, const Tensor& input, Int8Tables* int8,
                          LookupTable* table) {
  const auto& handle = input.scalar<tensorflow::ResourceHandle>()();
  if (int8 != nullptr) {
    auto found = int8->Find(handle.container(), handle.name(), context->resource_manager());
    if (!found.ok()) return found.status();
    table->int8 = *std::move(found);
    return absl::OkStatus();
  }
  tensorflow::core::RefCountPtr<tensorflow::Var> variable;
  absl::Status status = LookupResource(context, handle, &variable);
  if (!status.ok()) return status;
  const tensorflow::tf_shared_lock lock(*variable->mu());
  table->values = *variable->tensor();
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadLookupTables(OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> in_int8, std::vector<LookupTable>* tables) {
  tensorflow::OpInputList inputs;
  if (absl::Status status = context->input_list("tables", &inputs); !status.ok()) return status;
  tables->resize(inputs.size());
  tensorflow::core::RefCountPtr<Int8Tables> int8;
  if (!in_int8.empty()) {
    auto found = Int8Tables::In(context->resource_manager());
    if (!found.ok()) return found.status();
    int8 = *std::move(found);
  }
  for (int i = 0; i < inputs.size(); ++i) {
    LookupTable& table = (*tables)[i];
    if (inputs[i].dtype() == tensorflow::DT_RESOURCE) {
      const bool wanted = std::find(in_int8.begin(), in_int8.end(), i) != in_int8.end();
      absl::Status status = ReadVariable(context, inputs[i], wanted ? int8.get() : nullptr, &table);
      if (!status.ok()) return status;
    } else {
      table.values = inputs[i];
    }
    if (table.int8 == nullptr && (table.values.dims() != 2 || table.values.dtype() != type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", i, " of ", context->op_kernel().name(), " is ", table.values.DebugString(0),
          "; a matrix of ", DataTypeString(type), " was expected"));
    }
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
