#include "server/inference/example_batch.h"

#include "server/inference/predict.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::Input;

using Examples = google::protobuf::RepeatedPtrField<tensorflow::Example>;

const Examples& ExamplesOf(const Input& input) {
  return input.has_example_list_with_context() ? input.example_list_with_context().examples()
                                               : input.example_list().examples();
}

Status CheckContextBytes(int64_t context_bytes, int64_t examples) {
  if (context_bytes <= ExampleBatch::kMaxContextBytes / examples) return OkStatus();
  return ResourceExhausted("example_list_with_context: a context of ", context_bytes,
                           " bytes in front of each of ", examples, " examples fills over ",
                           ExampleBatch::kMaxContextBytes, " bytes");
}

}  // namespace

Status ExampleBatch::Create(const Input& input, ExampleBatch* batch) {
  const Examples& examples = ExamplesOf(input);
  batch->size_ = examples.size();
  if (examples.empty()) {
    return InvalidArgument(
        "Input is empty: expected at least one tf.Example in input.example_list or "
        "input.example_list_with_context");
  }
  const tensorflow::Example& context = input.example_list_with_context().context();
  std::string serialized;
  context.SerializeToString(&serialized);
  const auto context_bytes = static_cast<int64_t>(serialized.size());
  if (Status status = CheckContextBytes(context_bytes, batch->size_); !status.ok()) return status;
  batch->expansion_.rows = batch->size_;
  batch->expansion_.columns_sent_once =
      batch->size_ > 1 ? static_cast<int64_t>(context.features().feature().size()) : 0;
  batch->expansion_.bytes_saved = (batch->size_ - 1) * context_bytes;
  tensorflow::TensorProto& tensor = (*batch->request_.mutable_inputs())[kInput];
  tensor.set_dtype(tensorflow::DT_STRING);
  tensor.mutable_tensor_shape()->add_dim()->set_size(batch->size_);
  tensor.mutable_string_val()->Reserve(examples.size());
  for (const tensorflow::Example& example : examples) {
    std::string* value = tensor.add_string_val();
    value->reserve(serialized.size() + example.ByteSizeLong());
    *value = serialized;
    example.AppendToString(value);
  }
  return OkStatus();
}

Status ExampleBatch::Run(const Servable& servable, const std::string& signature_name,
                         const std::vector<std::string>& outputs, CallStats* stats,
                         std::unique_ptr<engine::Outputs>* result) {
  request_.mutable_model_spec()->set_signature_name(signature_name);
  *request_.mutable_output_filter() = {outputs.begin(), outputs.end()};
  stats->expansion = expansion_;
  const auto start = std::chrono::steady_clock::now();
  Status status = Predict(servable, request_, result);
  stats->runtime += std::chrono::steady_clock::now() - start;
  return status;
}

}  // namespace colcast::inference
