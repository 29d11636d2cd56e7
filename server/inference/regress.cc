#include "server/inference/regress.h"

#include "server/inference/example_call.h"
#include "server/inference/regression.h"

namespace colcast::inference {

using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

Status Regress(const Servable& servable, const RegressionRequest& request,
               const ExampleInput& input, const CallOptions& options, RegressionResponse* response,
               CallStats* stats) {
  return RunExamples(servable, request, input, options, CheckRegression, ToRegression, response,
                     stats);
}

Status Regress(const Servable& servable, const RegressionRequest& request,
               const CallOptions& options, RegressionResponse* response, CallStats* stats) {
  std::string message;
  ExampleInput input;
  if (Status status = TakeInput(request, kExampleRequest, options, &message, &input);
      !status.ok()) {
    return status;
  }
  return Regress(servable, request, input, options, response, stats);
}

}  // namespace colcast::inference
