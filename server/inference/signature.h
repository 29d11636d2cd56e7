// Finds a model's signature by the name in a request.
#ifndef COLCAST_SERVER_INFERENCE_SIGNATURE_H_
#define COLCAST_SERVER_INFERENCE_SIGNATURE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/inference/call_options.h"
#include "server/inference/servable.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::inference {

// The name of the requested signature; "serving_default" if the request names none.
const std::string& SignatureNameOf(const tensorflow::serving::ModelSpec& spec);
std::string_view SignatureNameOf(std::string_view requested);

// Returns INVALID_ARGUMENT, listing the model's signatures, if there is none with that name.
Status FindSignature(const Servable& servable, std::string_view name,
                     const tensorflow::SignatureDef** signature);

// Checks whether Predict may run the signature; an empty name means "serving_default". If
// options.check_method_names is set, returns INTERNAL, as TensorFlow Serving does, unless the
// signature has one of its three method names.
Status CheckMethodName(const Servable& servable, std::string_view signature_name,
                       const CallOptions& options);

// Formats the map's keys for messages, sorted: {classes, scores}.
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
