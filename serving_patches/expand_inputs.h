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

// Appends to `inputs` the feed name and the tensor of every input of `signature`: from the request
// if it was sent, otherwise from the signature's defaults, with one-row inputs expanded.
//
// Returns INVALID_ARGUMENT, as from GetInputValues(), for a missing or unknown input and for a
// proto that is not a tensor; also for everything that the expansion rule rejects
// (expansion_rule.h).
//
// Returns RESOURCE_EXHAUSTED if the tensors would exceed the bytes that were sent by more than the
// environment variable TF_SERVING_MAX_EXPANDED_BYTES, by default 1 GiB: a small request must not
// fill the memory. The variable is read on the first call; FAILED_PRECONDITION if it is not a
// number.
//
// Behaves exactly like GetInputValues(), without checking shapes, for a signature with one input,
// which has nothing to expand, and for every signature if TF_SERVING_EXPAND_USER_FEATURES=0 is set
// when the process first calls it.
absl::Status ExpandedInputValues(
    const tensorflow::SignatureDef& signature,
    const google::protobuf::Map<std::string, tensorflow::TensorProto>& request_inputs,
    std::vector<std::pair<std::string, tensorflow::Tensor>>& inputs);

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_EXPAND_INPUTS_H_
