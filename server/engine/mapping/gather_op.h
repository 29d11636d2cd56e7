// The ops ColcastGather and ColcastResourceGather: gather rows of a table that need not be aligned,
// with the results and errors of Gather, GatherV2 along the first axis, and ResourceGather. They
// exist only in the server; a SavedModel never contains them.
//
// Inputs: `table`, of rank 1 or more, or the handle of a variable with such a table; `indices`.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
#define COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_

#include "tensorflow/core/framework/node_def.pb.h"

namespace colcast::engine {

bool IsMappedGather(const tensorflow::NodeDef& node);

// Turns a ResourceGather, Gather or GatherV2 of rows into one of these ops. The node keeps its name
// and output.
void MakeMappedGather(tensorflow::NodeDef* node);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
