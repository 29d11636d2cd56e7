// Finds a model's signatures by the names in requests.
#ifndef COLCAST_SERVER_INFERENCE_SIGNATURE_H_
#define COLCAST_SERVER_INFERENCE_SIGNATURE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::inference {

// The signature's name; "serving_default" if the request has none.
const std::string& SignatureNameOf(const tensorflow::serving::ModelSpec& spec);
std::string_view SignatureNameOf(std::string_view requested);

// Returns INVALID_ARGUMENT, listing the model's signatures, if none has that name.
Status FindSignature(const Servable& servable, std::string_view name,
                     const tensorflow::SignatureDef** signature);

// Whether Predict may run the signature ("serving_default" for an empty name). Returns INTERNAL, as
// in TensorFlow Serving, if the options ask for the check and the signature's method name is none
// of TensorFlow Serving's three.
Status CheckMethodName(const Servable& servable, std::string_view signature_name,
                       const CallOptions& options);

// Sorted names of inputs, outputs or signatures for messages: {classes, scores}.
template <typename Map>
std::string KeyList(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  std::string list = "{";
  for (const std::string& key : keys) list += (list.size() > 1 ? ", " : "") + key;
  return list + "}";
}

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_SIGNATURE_H_
