// The ops ColcastGather and ColcastResourceGather: gather rows of a table whose memory need not be
// aligned, with the results and errors of Gather, GatherV2 along the first axis, and
// ResourceGather. They exist only in the server; a SavedModel never contains them.
//
// Inputs: `table`, of rank 1 or more, or the handle of a variable with such a table; `indices`.
// If a sum by segment reads the rows, a second output has the position of each index's row.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
#define COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_

#include <map>
#include <set>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

bool IsMappedGather(const tensorflow::NodeDef& node);

// Turns a ResourceGather, Gather or GatherV2 of rows into one of these ops. The node keeps its name
// and output.
void MakeMappedGather(tensorflow::NodeDef* node);

// Makes `sum`, a SparseSegment op, sum the rows that `gather`, one of these ops, reads. TensorFlow
// would read the whole table for such a sum. `is_in_function` says how the graph names outputs.
void SumGathered(bool is_in_function, tensorflow::NodeDef* gather, tensorflow::NodeDef* sum);

// Replaces every op that gathers rows of `variables`, in the graph or its functions, with a
// ColcastGather. `variables` are named by the `shared_name` of their VarHandleOps. Returns the
// variables that are also used in other ways, each with one such use; their values must be in
// memory.
std::map<std::string, std::string> GatherMapped(const std::set<std::string>& variables,
                                                const tensorflow::SignatureDef& declared,
                                                tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_GATHER_OP_H_
