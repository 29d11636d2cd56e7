// The model that a request names, without reading the request.
#ifndef COLCAST_SERVER_WIRE_MODEL_NAME_H_
#define COLCAST_SERVER_WIRE_MODEL_NAME_H_

#include <string>

#include "server/wire/bytes.h"

namespace colcast {

// How deep in a request its model's name is: the first field of the message that is the first
// field, and so on.
enum class ModelNameDepth {
  kInRequest = 1,     // ModelInferRequest
  kInSpec = 2,        // PredictRequest, ClassificationRequest, RegressionRequest
  kInSpecOfTask = 3,  // MultiInferenceRequest
};

// Empty where the request is malformed, names none, or has other fields before it and more of them
// than anyone writes. It is a guess where a request has the field twice.
std::string ModelNameOf(const Bytes& request, ModelNameDepth depth);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_MODEL_NAME_H_
