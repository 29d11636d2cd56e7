// Makes the single-threaded executor treat conditions as TensorFlow's default executor does.
#ifndef COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
#define COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Makes If, While and Case, in the graph and in its functions, read their condition as a scalar.
// TensorFlow's default executor lowers them to Switch and Merge, which refuse several values and
// accept a list of one value. The single-threaded executor runs them without lowering, and treats
// any list that is not empty as true: an If could take the wrong branch, a While might never end.
// The error message is Switch's.
//
// Changes only nodes that TensorFlow would lower.
void RequireScalarConditions(tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
