// The op ColcastRestore: RestoreV2, but large tensors that only become the values of variables are
// mapped. It exists in the server only; a SavedModel never holds it.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_
#define COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Puts it in place of each RestoreV2 of a graph and its functions. Tensors of under `least_bytes`
// are restored.
void MapRestored(int64_t least_bytes, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_
