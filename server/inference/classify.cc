#include "server/inference/classify.h"

#include "server/inference/example_batch.h"
#include "server/wire/describe.h"

namespace colcast::inference {
namespace {

constexpr char kClasses[] = "classes";
constexpr char kScores[] = "scores";

Status CheckOutput(const OutputColumn& column, int64_t examples, DataType dtype) {
  if (column.dims.size() != 2) {
    return InvalidArgument("Expected Tensor shape: [batch_size num_classes] but got ",
                           ShapeName(column.dims), " for output \"", column.name, '"');
  }
  if (column.dtype != dtype) {
    return InvalidArgument("Expected ", column.name, " Tensor of ", DataTypeName(dtype),
                           ". Got: ", DataTypeName(column.dtype));
  }
  if (column.dims[0] != examples) {
    return InvalidArgument("Expected ", column.name, " output batch size of ", examples,
                           ". Got: ", column.dims[0]);
  }
  return OkStatus();
}

// The columns that were fetched; null where the signature has none.
struct Fetched {
  const OutputColumn* classes = nullptr;
  const OutputColumn* scores = nullptr;
};

Status CheckOutputs(const std::vector<OutputColumn>& outputs, int64_t examples, Fetched* fetched) {
  for (const OutputColumn& column : outputs) {
    const bool is_classes = column.name == kClasses;
    if (Status status = CheckOutput(column, examples, is_classes ? DT_STRING : DT_FLOAT);
        !status.ok()) {
      return status;
    }
    (is_classes ? fetched->classes : fetched->scores) = &column;
  }
  if (fetched->classes != nullptr && fetched->scores != nullptr &&
      fetched->classes->dims[1] != fetched->scores->dims[1]) {
    return InvalidArgument("Tensors class and score should match in dim_size(1). Got ",
                           fetched->classes->dims[1], " vs. ", fetched->scores->dims[1]);
  }
  return OkStatus();
}

}  // namespace

Status Classify(const Servable& servable, const tensorflow::serving::ClassificationRequest& request,
                const ExampleInput& input, const CallOptions& options,
                tensorflow::serving::ClassificationResponse* response, CallStats* stats) {
  return RunExamples(servable, request, input, options, CheckClassification, ToClassification,
                     response, stats);
}

Status CheckClassification(const tensorflow::SignatureDef& signature, const CallOptions& options,
                           std::vector<std::string>* fetches) {
  if (Status status =
          CheckExampleSignature(signature, "classification", kClassifyMethodName, options);
      !status.ok()) {
    return status;
  }
  fetches->clear();
  for (const char* name : {kClasses, kScores}) {
    if (signature.outputs().contains(name)) fetches->push_back(name);
  }
  if (!fetches->empty() && signature.outputs().size() <= 2) return OkStatus();
  return InvalidArgument(
      "Expected classification signature outputs to be one or two, among them at least one of \"",
      kClasses, "\" or \"", kScores, "\". Found: ", KeyList(signature.outputs()));
}

Status ToClassification(const std::vector<OutputColumn>& outputs, int64_t examples,
                        tensorflow::serving::ClassificationResult* result) {
  Fetched fetched;
  if (Status status = CheckOutputs(outputs, examples, &fetched); !status.ok()) return status;
  const int64_t classes = (fetched.classes != nullptr ? fetched.classes : fetched.scores)->dims[1];
  for (int64_t row = 0; row < examples; ++row) {
    auto* const classifications = result->add_classifications();
    for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
      auto* const added = classifications->add_classes();
      if (fetched.classes != nullptr) {
        added->set_label(std::string(fetched.classes->string_at(fetched.classes->data, i)));
      }
      if (fetched.scores != nullptr) {
        added->set_score(static_cast<const float*>(fetched.scores->data)[i]);
      }
    }
  }
  return OkStatus();
}

}  // namespace colcast::inference
