// The fork's entry point, which TF Serving's Predict calls instead of
// saved_model::GetInputValues().
#ifndef COLCAST_SERVING_PATCHES_EXPAND_INPUTS_H_
#define COLCAST_SERVING_PATCHES_EXPAND_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/map.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast {

// Appends to `inputs` the feed name and the tensor of every input of `signature`. Takes the tensor
// from the request or, if it was not sent, from the signature's defaults. Expands one-row inputs.
//
// Like GetInputValues(), returns INVALID_ARGUMENT for a missing or unknown input and for a proto
// that is not a tensor. Also returns it for everything that the expansion rule rejects
// (expansion_rule.h).
//
// Returns RESOURCE_EXHAUSTED if the tensors would exceed the sent bytes by more than the
// environment variable TF_SERVING_MAX_EXPANDED_BYTES (default 1 GiB), because a small request must
// not fill the memory. Reads the variable on the first call; returns FAILED_PRECONDITION if it is
// not a number.
//
// Behaves exactly like GetInputValues(), which does not check shapes, for a signature with one
// input, which has nothing to expand; for a signature that takes the parts of a sparse or ragged
// tensor, as tf.saved_model.save names and declares them; and for every signature if
// TF_SERVING_EXPAND_USER_FEATURES is 0 on the first call.
absl::Status ExpandedInputValues(
    const tensorflow::SignatureDef& signature,
    const google::protobuf::Map<std::string, tensorflow::TensorProto>& request_inputs,
    std::vector<std::pair<std::string, tensorflow::Tensor>>& inputs);

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_EXPAND_INPUTS_H_
