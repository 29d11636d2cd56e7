// Whether the checkpoint that a SavedModel restores its variables from is there.
#ifndef COLCAST_SERVER_ENGINE_CHECKPOINT_H_
#define COLCAST_SERVER_ENGINE_CHECKPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// FAILED_PRECONDITION where variables would be restored from a checkpoint without an index: it is
// still being copied. TensorFlow would load the model without complaint, and every request would
// fail. Variables that only the model's init op fills need no checkpoint. DATA_LOSS for a pipe
// among its files.
absl::Status CheckCheckpoint(const std::string& directory, const tensorflow::MetaGraphDef& model);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_CHECKPOINT_H_
