#include "server/inference/predict.h"

#include <string>

#include "server/wire/predict_request.h"

namespace colcast::inference {

Status Predict(const Servable& servable, const tensorflow::serving::PredictRequest& request,
               std::unique_ptr<engine::Outputs>* outputs) {
  std::string message;
  if (!request.SerializeToString(&message)) {
    return ResourceExhausted("the request takes over 2 GiB as a PredictRequest");
  }
  colcast::PredictRequest decoded;
  if (Status status = DecodePredictRequest(Bytes(message), &decoded); !status.ok()) return status;
  return servable.model().Predict(decoded, outputs);
}

}  // namespace colcast::inference
