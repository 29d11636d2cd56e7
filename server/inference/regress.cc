#include "server/inference/regress.h"

#include "server/inference/example_batch.h"
#include "server/wire/describe.h"

namespace colcast::inference {
namespace {

constexpr char kOutputs[] = "outputs";

Status CheckOutput(const OutputColumn& column, int64_t examples) {
  const Span<int64_t> dims = column.dims;
  if (dims.size() != 1 && (dims.size() != 2 || dims[1] != 1)) {
    return InvalidArgument(
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got ",
        ShapeName(dims));
  }
  if (dims[0] != examples) {
    return InvalidArgument("Input batch size did not match output batch size: ", examples, " vs. ",
                           dims[0]);
  }
  if (column.dtype != DT_FLOAT) {
    return InvalidArgument("Expected output Tensor of DT_FLOAT. Got: ", DataTypeName(column.dtype));
  }
  return OkStatus();
}

}  // namespace

Status Regress(const Servable& servable, const tensorflow::serving::RegressionRequest& request,
               const ExampleInput& input, const CallOptions& options,
               tensorflow::serving::RegressionResponse* response, CallStats* stats) {
  return RunExamples(servable, request, input, options, CheckRegression, ToRegression, response,
                     stats);
}

Status CheckRegression(const tensorflow::SignatureDef& signature, const CallOptions& options,
                       std::vector<std::string>* fetches) {
  if (Status status = CheckExampleSignature(signature, "regression", kRegressMethodName, options);
      !status.ok()) {
    return status;
  }
  *fetches = {kOutputs};
  if (signature.outputs().size() == 1 && signature.outputs().contains(kOutputs)) return OkStatus();
  return InvalidArgument("No regression outputs found in SignatureDef: expected one output, \"",
                         kOutputs, "\"; found ", KeyList(signature.outputs()));
}

Status ToRegression(const std::vector<OutputColumn>& outputs, int64_t examples,
                    tensorflow::serving::RegressionResult* result) {
  const OutputColumn& column = outputs[0];
  if (Status status = CheckOutput(column, examples); !status.ok()) return status;
  const auto* const values = static_cast<const float*>(column.data);
  for (int64_t row = 0; row < examples; ++row) result->add_regressions()->set_value(values[row]);
  return OkStatus();
}

}  // namespace colcast::inference
