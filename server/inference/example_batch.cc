#include "server/inference/example_batch.h"

#include "server/inference/predict.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::inference {
namespace {

Status CheckContext(const ExampleInput& input, int64_t max_expanded_bytes) {
  const auto examples = static_cast<int64_t>(input.examples.size());
  if (static_cast<int64_t>(input.context.size()) <= max_expanded_bytes / examples) {
    return OkStatus();
  }
  return ResourceExhausted("example_list_with_context: a context of ", input.context.size(),
                           " bytes in front of each of ", examples, " examples fills over ",
                           max_expanded_bytes, " bytes, which is max_expanded_bytes");
}

engine::ExpansionStats StatsOf(const ExampleInput& input) {
  engine::ExpansionStats stats;
  stats.rows = static_cast<int64_t>(input.examples.size());
  if (stats.rows == 1 || input.context.empty()) return stats;
  tensorflow::Example context;
  context.ParseFromString(input.context);
  stats.columns_sent_once = static_cast<int64_t>(context.features().feature().size());
  stats.bytes_saved = (stats.rows - 1) * static_cast<int64_t>(input.context.size());
  return stats;
}

}  // namespace

Status ExampleBatch::Create(const ExampleInput& input, const CallOptions& options,
                            ExampleBatch* batch) {
  if (input.examples.empty()) {
    return InvalidArgument(
        "Input is empty: expected at least one tf.Example in input.example_list or "
        "input.example_list_with_context");
  }
  if (Status status = CheckContext(input, options.max_expanded_bytes); !status.ok()) return status;
  batch->expansion_ = StatsOf(input);
  tensorflow::TensorProto& tensor = (*batch->request_.mutable_inputs())[kInput];
  tensor.set_dtype(tensorflow::DT_STRING);
  tensor.mutable_tensor_shape()->add_dim()->set_size(batch->size());
  tensor.mutable_string_val()->Reserve(static_cast<int>(input.examples.size()));
  for (const Bytes& example : input.examples) {
    std::string* const value = tensor.add_string_val();
    value->reserve(input.context.size() + example.size());
    *value = input.context;
    value->resize(input.context.size() + example.size());
    example.CopyTo(value->data() + input.context.size());
  }
  return OkStatus();
}

Status ExampleBatch::Run(const Servable& servable, const std::string& signature_name,
                         const std::vector<std::string>& outputs, CallStats* stats,
                         std::unique_ptr<engine::Outputs>* result) {
  return Call(Predict, servable, signature_name, outputs, stats, result);
}

Status ExampleBatch::RunTogether(const Servable& servable, const std::string& signature_name,
                                 const std::vector<std::string>& outputs, CallStats* stats,
                                 std::unique_ptr<engine::Outputs>* result) {
  return Call(PredictTogether, servable, signature_name, outputs, stats, result);
}

Status ExampleBatch::Call(Method method, const Servable& servable,
                          const std::string& signature_name,
                          const std::vector<std::string>& outputs, CallStats* stats,
                          std::unique_ptr<engine::Outputs>* result) {
  request_.mutable_model_spec()->set_signature_name(signature_name);
  *request_.mutable_output_filter() = {outputs.begin(), outputs.end()};
  const auto start = std::chrono::steady_clock::now();
  Status status = method(servable, request_, result);
  stats->runtime += std::chrono::steady_clock::now() - start;
  if (status.ok()) stats->expansion = expansion_;
  return status;
}

}  // namespace colcast::inference
