// Finds signatures whose inputs are parts of a sparse or ragged tensor. Their first dimensions
// count values, or are lists of lengths or offsets, so they must not be repeated.
#ifndef COLCAST_SERVER_ENGINE_SPARSE_PARTS_H_
#define COLCAST_SERVER_ENGINE_SPARSE_PARTS_H_

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

// Whether an input is, unchanged but for its dtype and trailing shape, the indices, shape, row
// splits or segment ids of an op, in the graph or in a function that it calls; or whether its rows
// are sliced, as differences of row splits are computed. Values alone do not count: a model may
// make a sparse tensor of a dense column.
bool TakesSparseParts(const tensorflow::GraphDef& graph, const tensorflow::SignatureDef& signature);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SPARSE_PARTS_H_
