// Conditions of several values, which TensorFlow's usual executor refuses.
#ifndef COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
#define COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace colcast::engine {

// Has If, While and Case, in the graph and in its functions, check that their condition is a
// scalar. TensorFlow's usual executor runs them as Switch and Merge, which check it; the
// single-threaded one runs them as they are, and any condition that is not empty is then true: an
// If takes the wrong branch, a While never ends. The error is Switch's.
//
// Only those that TensorFlow would run as Switch and Merge are changed.
void RequireScalarConditions(tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SCALAR_CONDITIONS_H_
