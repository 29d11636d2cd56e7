#include <chrono>
#include <utility>

#include "server/inference/example_run.h"
#include "server/wire/data_type.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::inference {

namespace {

using tensorflow::SignatureDef;
using tensorflow::serving::ClassificationResult;
using tensorflow::serving::RegressionResult;

constexpr char kClasses[] = "classes";
constexpr char kScores[] = "scores";
constexpr char kOutputs[] = "outputs";

Status CheckInput(const SignatureDef& signature, const char* kind, const std::string& method_name,
                  const CallOptions& options) {
  if (options.check_method_names && signature.method_name() != method_name) {
    return InvalidArgument("Expected ", kind, " signature method_name to be ", method_name,
                           ". Was: ", signature.method_name());
  }
  if (signature.inputs().size() == 1 && signature.inputs().contains(kExamplesInput)) {
    return OkStatus();
  }
  return InvalidArgument("No ", kind, " inputs found in SignatureDef: expected one input, \"",
                         kExamplesInput, "\", that takes serialized tf.Examples; found ",
                         KeyList(signature.inputs()));
}

Status CheckClassification(const SignatureDef& signature, std::vector<std::string>* fetches) {
  for (const char* name : {kClasses, kScores}) {
    if (signature.outputs().contains(name)) fetches->push_back(name);
  }
  if (!fetches->empty() && signature.outputs().size() <= 2) return OkStatus();
  return InvalidArgument(
      "Expected classification signature outputs to be one or two, among them at least one of \"",
      kClasses, "\" or \"", kScores, "\". Found: ", KeyList(signature.outputs()));
}

Status CheckRegression(const SignatureDef& signature, std::vector<std::string>* fetches) {
  *fetches = {kOutputs};
  if (signature.outputs().size() == 1 && signature.outputs().contains(kOutputs)) return OkStatus();
  return InvalidArgument("No regression outputs found in SignatureDef: expected one output, \"",
                         kOutputs, "\"; found ", KeyList(signature.outputs()));
}

Status CheckClasses(const OutputColumn& column, int64_t examples, DataType dtype) {
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

Status CheckNumbers(const OutputColumn& column, int64_t examples) {
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

Status ToClassification(const std::vector<OutputColumn>& outputs, int64_t examples,
                        ClassificationResult* result) {
  const OutputColumn* labels = nullptr;
  const OutputColumn* scores = nullptr;
  for (const OutputColumn& column : outputs) {
    const bool is_labels = column.name == kClasses;
    if (Status status = CheckClasses(column, examples, is_labels ? DT_STRING : DT_FLOAT);
        !status.ok()) {
      return status;
    }
    (is_labels ? labels : scores) = &column;
  }
  if (labels != nullptr && scores != nullptr && labels->dims[1] != scores->dims[1]) {
    return InvalidArgument("Tensors class and score should match in dim_size(1). Got ",
                           labels->dims[1], " vs. ", scores->dims[1]);
  }
  const int64_t classes = (labels != nullptr ? labels : scores)->dims[1];
  for (int64_t row = 0; row < examples; ++row) {
    auto* const classifications = result->add_classifications();
    for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
      auto* const added = classifications->add_classes();
      if (labels != nullptr) added->set_label(std::string(labels->string_at(labels->data, i)));
      if (scores != nullptr) added->set_score(static_cast<const float*>(scores->data)[i]);
    }
  }
  return OkStatus();
}

Status ToRegression(const std::vector<OutputColumn>& outputs, int64_t examples,
                    RegressionResult* result) {
  const OutputColumn& column = outputs[0];
  if (Status status = CheckNumbers(column, examples); !status.ok()) return status;
  const auto* const values = static_cast<const float*>(column.data);
  for (int64_t row = 0; row < examples; ++row) result->add_regressions()->set_value(values[row]);
  return OkStatus();
}

}  // namespace

Status CheckTask(const SignatureDef& signature, const std::string& method_name,
                 const CallOptions& options, std::vector<std::string>* fetches) {
  const bool classifies = method_name == kClassifyMethodName;
  if (!classifies && method_name != kRegressMethodName) {
    return Error(StatusCode::kUnimplemented,
                 "Unsupported signature method_name: ", Quoted(method_name), "; expected ",
                 kClassifyMethodName, " or ", kRegressMethodName);
  }
  const char* const kind = classifies ? "classification" : "regression";
  if (Status status = CheckInput(signature, kind, method_name, options); !status.ok()) {
    return status;
  }
  fetches->clear();
  return classifies ? CheckClassification(signature, fetches) : CheckRegression(signature, fetches);
}

Status ToResult(const std::vector<OutputColumn>& outputs, const std::string& method_name,
                int64_t examples, tensorflow::serving::InferenceResult* result) {
  return method_name == kClassifyMethodName
             ? ToClassification(outputs, examples, result->mutable_classification_result())
             : ToRegression(outputs, examples, result->mutable_regression_result());
}

namespace {

Status CheckContext(const ExampleInput& input, int64_t max_expanded_bytes) {
  const auto examples = static_cast<int64_t>(input.examples.size());
  if (static_cast<int64_t>(input.context.size()) <= max_expanded_bytes / examples) {
    return OkStatus();
  }
  return ResourceExhausted("example_list_with_context: a context of ", input.context.size(),
                           " bytes in front of each of ", examples, " examples takes more than ",
                           max_expanded_bytes, " bytes, which is max_expanded_bytes");
}

// Returns INVALID_ARGUMENT if the context is not a tf.Example.
Status ReadStats(const ExampleInput& input, engine::ExpansionStats* stats) {
  *stats = {};
  stats->rows = static_cast<int64_t>(input.examples.size());
  if (input.context.empty()) return OkStatus();
  tensorflow::Example context;
  if (!context.ParseFromString(input.context)) {
    return InvalidArgument("example_list_with_context: its context of ", input.context.size(),
                           " bytes is not a tf.Example");
  }
  if (stats->rows == 1) return OkStatus();
  stats->columns_sent_once = static_cast<int64_t>(context.features().feature().size());
  stats->bytes_saved = (stats->rows - 1) * static_cast<int64_t>(input.context.size());
  return OkStatus();
}

std::string WithContext(const std::string& context, const Bytes& example) {
  std::string joined;
  joined.reserve(context.size() + example.size());
  joined = context;
  joined.resize(context.size() + example.size());
  example.CopyTo(joined.data() + context.size());
  return joined;
}

}  // namespace

Status ExampleBatch::Fill(const ExampleInput& input, const CallOptions& options) {
  if (input.examples.empty()) {
    return InvalidArgument(
        "Input is empty: expected at least one tf.Example in input.example_list or "
        "input.example_list_with_context");
  }
  if (Status status = CheckContext(input, options.max_expanded_bytes); !status.ok()) return status;
  if (Status status = ReadStats(input, &expansion_); !status.ok()) return status;
  request_.Clear();
  Column* const column = request_.AddColumn(kExamplesInput);
  column->dtype = DT_STRING;
  column->dims = {size()};
  column->values.strings.reserve(input.examples.size());
  for (const Bytes& example : input.examples) {
    column->values.AddString(input.context.empty()
                                 ? example
                                 : Bytes(request_.Keep(WithContext(input.context, example))));
  }
  return OkStatus();
}

Status ExampleBatch::Enter(const std::vector<const Signature*>& signatures,
                           const CallOptions& options) const {
  constexpr int64_t kOfAnExample = 40;  // bytes: a tstring and one row of the other tensors
  if (options.gate == nullptr) return OkStatus();
  const auto bytes = static_cast<int64_t>(request_.columns()[0].values.received_bytes());
  return options.gate->Enter(signatures, size(), bytes + kOfAnExample * size());
}

Status ExampleBatch::Run(const Servable& servable, const Signature& signature,
                         const std::vector<std::string>& outputs, metrics::CallRecord* record,
                         std::unique_ptr<engine::Outputs>* result) {
  request_.model_spec.signature_name = signature.name;
  request_.output_filter.assign(outputs.begin(), outputs.end());
  const auto start = std::chrono::steady_clock::now();
  Status status = servable.model().Predict(request_, signature.number, result);
  if (record->run_start == decltype(record->run_start)()) record->run_start = start;
  record->runtime += std::chrono::steady_clock::now() - start;
  if (!status.ok()) return status;
  record->expansion = (*result)->expansion();
  record->expansion.columns_sent_once = expansion_.columns_sent_once;
  record->expansion.bytes_saved = expansion_.bytes_saved;
  return status;
}

}  // namespace colcast::inference
