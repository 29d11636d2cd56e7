#include "server/engine/rewrites/lookup_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace colcast::engine {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;
using tensorflow::core::RefCountPtr;

absl::Status ReadInt8(const Tensor& input, const Int8Tables& tables, LookupTable* table) {
  auto found = tables.Find(input.scalar<tensorflow::ResourceHandle>()().name());
  if (!found.ok()) return found.status();
  table->int8 = *std::move(found);
  table->changed = tables::ReadsGeneration::Of(table->int8->values());
  return absl::OkStatus();
}

}  // namespace

TableVariables::~TableVariables() {
  for (const std::atomic<Known*>& known : known_) delete known.load(std::memory_order_relaxed);
}

absl::Status TableVariables::Find(OpKernelContext* context, int table, const Tensor& handle,
                                  RefCountPtr<Var>* variable) {
  Known* known = known_[table].load(std::memory_order_acquire);
  // VarHandleOp returns the same tensor in every run, and while it is held here nothing can write
  // to it.
  if (known != nullptr && known->handle.data() == handle.data()) {
    *variable = known->variable.GetNewRef();
    if (*variable != nullptr) return absl::OkStatus();
  }
  absl::Status status =
      LookupResource(context, handle.scalar<tensorflow::ResourceHandle>()(), variable);
  if (!status.ok() || known != nullptr) return status;
  auto found =
      std::make_unique<Known>(Known{handle, tensorflow::core::WeakPtr<Var>(variable->get())});
  const bool is_first =
      known_[table].compare_exchange_strong(known, found.get(), std::memory_order_acq_rel);
  if (is_first) found.release();
  return absl::OkStatus();
}

absl::Status ReadLookupTables(OpKernelContext* context, tensorflow::DataType type,
                              absl::Span<const int> int8, TableVariables* variables,
                              std::vector<LookupTable>* tables) {
  tensorflow::OpInputList inputs;
  if (absl::Status status = context->input_list("tables", &inputs); !status.ok()) return status;
  tables->resize(inputs.size());
  RefCountPtr<Int8Tables> forms;
  if (!int8.empty()) {
    auto found = Int8Tables::In(context->resource_manager());
    if (!found.ok()) return found.status();
    forms = *std::move(found);
  }
  for (int i = 0; i < inputs.size(); ++i) {
    LookupTable& table = (*tables)[i];
    if (inputs[i].dtype() == tensorflow::DT_RESOURCE) {
      const bool wanted = std::find(int8.begin(), int8.end(), i) != int8.end();
      RefCountPtr<Var> variable;
      absl::Status status = wanted ? ReadInt8(inputs[i], *forms, &table)
                                   : variables->Find(context, i, inputs[i], &variable);
      if (!status.ok()) return status;
      if (wanted) continue;
      const tensorflow::tf_shared_lock lock(*variable->mu());
      table.values = *variable->tensor();
    } else {
      table.values = inputs[i];
    }
    if (table.values.dims() != 2 || table.values.dtype() != type) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", i, " of ", context->op_kernel().name(), " is ", table.values.DebugString(0),
          "; a matrix of ", DataTypeString(type), " was expected"));
    }
    table.changed = tables::ReadsGeneration::Of(table.values.data());
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
