// The ops ColcastGather and ColcastResourceGather: rows of a table at any address, as Gather,
// GatherV2 along the first axis and ResourceGather give them, with their errors. They exist in the
// server only; a SavedModel never holds them.
//
// Inputs: `table`, of rank 1 or more, or the handle of a variable that holds one; `indices`.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
#define COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_

#include "tensorflow/core/framework/node_def.pb.h"

namespace colcast::engine {

// Whether a node is one of them.
bool IsMappedGather(const tensorflow::NodeDef& node);

// Makes one of a ResourceGather, Gather or GatherV2 of rows; name and output stay.
void MakeMappedGather(tensorflow::NodeDef* node);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
