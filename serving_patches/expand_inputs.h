// The fork's entry: what TF Serving's Predict calls in place of saved_model::GetInputValues().
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

// Appends to `inputs` the feed name and the tensor of every input of `signature`: from the request
// where it was sent, from the signature's defaults where not, one-row inputs expanded.
//
// INVALID_ARGUMENT, as GetInputValues() has it, for a missing or unknown input and for a proto that
// is no tensor; besides for what the expansion rule rejects (expansion_rule.h).
//
// RESOURCE_EXHAUSTED if the tensors would take more memory beyond the bytes that were sent than
// TF_SERVING_MAX_EXPANDED_BYTES in the environment, 1 GiB without it: a small request must not fill
// the memory. The variable is read at the first call; FAILED_PRECONDITION if it holds no number.
//
// It is GetInputValues() itself, shapes unchecked, for a signature of one input, which has nothing
// to expand, and for every signature if TF_SERVING_EXPAND_USER_FEATURES=0 is in the environment
// when the process first calls it.
absl::Status ExpandedInputValues(
    const tensorflow::SignatureDef& signature,
    const google::protobuf::Map<std::string, tensorflow::TensorProto>& request_inputs,
    std::vector<std::pair<std::string, tensorflow::Tensor>>& inputs);

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_EXPAND_INPUTS_H_
