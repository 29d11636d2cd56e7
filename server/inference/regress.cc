#include "server/inference/regress.h"

#include "server/inference/example_call.h"
#include "server/inference/regression.h"

namespace colcast::inference {

Status Regress(const Servable& servable, const tensorflow::serving::RegressionRequest& request,
               const CallOptions& options, tensorflow::serving::RegressionResponse* response,
               CallStats* stats) {
  return RunExamples(servable, request, options, CheckRegression, ToRegression, response, stats);
}

}  // namespace colcast::inference
