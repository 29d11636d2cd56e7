#include "server/inference/classify.h"

#include "server/inference/classification.h"
#include "server/inference/example_call.h"

namespace colcast::inference {

Status Classify(const Servable& servable, const tensorflow::serving::ClassificationRequest& request,
                const CallOptions& options, tensorflow::serving::ClassificationResponse* response,
                CallStats* stats) {
  return RunExamples(servable, request, options, CheckClassification, ToClassification, response,
                     stats);
}

}  // namespace colcast::inference
