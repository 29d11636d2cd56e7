// Loads libraries of ops that TensorFlow's wheel lacks, such as TF Text's. Ops are registered for
// the whole process and stay registered; each library is loaded once.
#ifndef COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
#define COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Returns INVALID_ARGUMENT, with the path and the linker's reason, if the file is not a library of
// ops for this TensorFlow.
absl::Status LoadOpLibrary(const std::string& path);

// Call with the error of a model that failed to load. Returns OK if an op was not registered and
// the installed package that has it is now loaded; the caller must then retry. Otherwise returns
// the error; for a missing op, it adds the package that has it and what to do.
absl::Status ProvideMissingOp(const absl::Status& error);

// Loads the installed packages that have ops of a graph and its functions. An op that no package
// has is reported when the graph runs.
void ProvideOpsOf(const tensorflow::GraphDef& graph);

// Returns what `attempt` returns, calling it again each time ProvideMissingOp() has loaded a
// package, at most once per package.
absl::Status RetryWithMissingOps(const std::function<absl::Status()>& attempt);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
