#include "server/inference/classify.h"

#include "server/inference/classification.h"
#include "server/inference/example_call.h"

namespace colcast::inference {

using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;

Status Classify(const Servable& servable, const ClassificationRequest& request,
                const ExampleInput& input, const CallOptions& options,
                ClassificationResponse* response, CallStats* stats) {
  return RunExamples(servable, request, input, options, CheckClassification, ToClassification,
                     response, stats);
}

Status Classify(const Servable& servable, const ClassificationRequest& request,
                const CallOptions& options, ClassificationResponse* response, CallStats* stats) {
  std::string message;
  ExampleInput input;
  if (Status status = TakeInput(request, kExampleRequest, options, &message, &input);
      !status.ok()) {
    return status;
  }
  return Classify(servable, request, input, options, response, stats);
}

}  // namespace colcast::inference
