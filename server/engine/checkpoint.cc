#include "server/engine/checkpoint.h"

#include <filesystem>
#include <system_error>

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

// Refuses pipes: opening one that has no writer would block forever.
absl::Status CheckFiles(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_fifo(error)) {
      return absl::DataLossError(absl::StrCat(entry.path().string(), " is a pipe, not a file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCheckpoint(const std::string& directory, const tensorflow::MetaGraphDef& model) {
  if (model.saver_def().restore_op_name().empty() || !HasVariable(model.graph_def())) {
    return absl::OkStatus();
  }
  const std::string index = absl::StrCat(directory, "/", tensorflow::kSavedModelVariablesDirectory,
                                         "/", tensorflow::kSavedModelVariablesFilename, ".index");
  if (tensorflow::Env::Default()->FileExists(index).ok()) {
    return CheckFiles(absl::StrCat(directory, "/", tensorflow::kSavedModelVariablesDirectory));
  }
  return absl::FailedPreconditionError(absl::StrCat("the graph has variables but there is no ",
                                                    index, ": is it still being copied?"));
}

}  // namespace colcast::engine
