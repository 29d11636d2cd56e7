// The op ColcastRestore: RestoreV2, except that large tensors used only as values of variables are
// mapped. It exists only in the server; a SavedModel never contains it.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_
#define COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Replaces each RestoreV2 in a graph and its functions. Tensors smaller than `least_bytes` are
// restored as usual.
void MapRestored(int64_t least_bytes, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_RESTORE_OP_H_
