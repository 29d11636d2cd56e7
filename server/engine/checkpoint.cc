#include "server/engine/checkpoint.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/cc/saved_model/constants.h"
#include "tensorflow/core/platform/env.h"

namespace colcast::engine {
namespace {

bool HasVariable(const tensorflow::GraphDef& graph) {
  return absl::c_any_of(graph.node(), [](const tensorflow::NodeDef& node) {
    return node.op() == "VarHandleOp" || node.op() == "VariableV2" || node.op() == "Variable";
  });
}

}  // namespace

absl::Status CheckCheckpoint(const std::string& directory, const tensorflow::MetaGraphDef& model) {
  if (model.saver_def().restore_op_name().empty() || !HasVariable(model.graph_def())) {
    return absl::OkStatus();
  }
  const std::string index = absl::StrCat(directory, "/", tensorflow::kSavedModelVariablesDirectory,
                                         "/", tensorflow::kSavedModelVariablesFilename, ".index");
  if (tensorflow::Env::Default()->FileExists(index).ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the graph has variables but there is no ",
                                                    index, ": is it still being copied?"));
}

}  // namespace colcast::engine
