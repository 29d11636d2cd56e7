// Conditions that are no scalars, as TensorFlow's usual executor reads them.
#ifndef COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
#define COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Makes If, While and Case, in the graph and in its functions, read their condition as a scalar.
// TensorFlow's usual executor runs them as Switch and Merge, which refuse several values and read a
// list of one value as that value. The single-threaded executor runs them as they are, and any list
// that is not empty is then true: an If takes the wrong branch, a While never ends. The error is
// Switch's.
//
// Only those that TensorFlow would run as Switch and Merge are changed.
void RequireScalarConditions(tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
