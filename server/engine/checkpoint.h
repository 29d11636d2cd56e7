// Checks that the checkpoint from which a SavedModel restores its variables is complete.
#ifndef COLCAST_SERVER_ENGINE_CHECKPOINT_H_
#define COLCAST_SERVER_ENGINE_CHECKPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// Returns FAILED_PRECONDITION if variables would be restored from a checkpoint without an index,
// which is probably still being copied: TensorFlow would load the model without complaint, and
// every request would fail. Variables that only the model's init op fills need no checkpoint.
// Returns DATA_LOSS if one of the files is a pipe.
absl::Status CheckCheckpoint(const std::string& directory, const tensorflow::MetaGraphDef& model);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_CHECKPOINT_H_
