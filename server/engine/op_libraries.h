// Libraries of ops that TensorFlow's wheel does not have: TF Text's and others'. Ops are registered
// for the process and stay; a library is loaded once however often it is asked for.
#ifndef COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
#define COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// INVALID_ARGUMENT, with the path and the linker's reason, if the file is no library of ops that
// fits this TensorFlow.
absl::Status LoadOpLibrary(const std::string& path);

// To be asked when a model did not load, with that error. OK: an op was not registered, and the
// package that has it is installed beside TensorFlow and is loaded now; try the model again.
// Otherwise the error, and if an op was missing, which package has it and what to do.
absl::Status ProvideMissingOp(const absl::Status& error);

// Loads the installed packages that have ops of a graph and its functions; what nobody has is left
// for whoever runs it to report.
void ProvideOpsOf(const tensorflow::GraphDef& graph);

// What `attempt` returns, which is called again whenever ProvideMissingOp() found what it lacked,
// once per package at most.
absl::Status RetryWithMissingOps(const std::function<absl::Status()>& attempt);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
