// Loads libraries of ops that TensorFlow's wheel lacks, such as TF Text's. Ops are registered for
// the whole process and stay registered; each library is loaded once.
#ifndef COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
#define COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Returns INVALID_ARGUMENT, with the path and the linker's reason, if the file is not a library of
// ops for this TensorFlow.
absl::Status LoadOpLibrary(const std::string& path);

// Loads the installed packages that have ops of a graph and its functions. An op that no package
// has is reported when the graph runs.
void ProvideOpsOf(const tensorflow::GraphDef& graph);

// Adds to an error about an unregistered op which package has it, and what to do. Returns other
// errors unchanged.
absl::Status WithMissingOp(const absl::Status& error);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_OP_LIBRARIES_H_
