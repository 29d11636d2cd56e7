#include "server/inference/request_message.h"

#include <string>
#include <utility>

#include "server/wire/column.h"

namespace colcast::inference {
namespace {

class StringAdder final : public StringVisitor {
 public:
  explicit StringAdder(tensorflow::TensorProto* tensor) : tensor_(tensor) {}
  void Set(int64_t, const Bytes& value) override { tensor_->add_string_val(value.ToString()); }
  void Repeat(int64_t, int64_t) override {}

 private:
  tensorflow::TensorProto* const tensor_;
};

void SetValues(const Column& column, tensorflow::TensorProto* tensor) {
  int64_t elements = 0;
  if (!ElementCount(column, &elements).ok()) return;
  if (column.dtype == DT_STRING) {
    StringAdder adder(tensor);
    static_cast<void>(VisitStrings(column, elements, &adder));
  } else {
    std::string content(elements * ElementSize(column.dtype), '\0');
    static_cast<void>(CopyValues(column, elements, content.data()));
    tensor->set_tensor_content(std::move(content));
  }
}

}  // namespace

tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request) {
  tensorflow::serving::PredictRequest message;
  message.mutable_model_spec()->set_name(request.model_spec.name);
  message.mutable_model_spec()->set_signature_name(request.model_spec.signature_name);
  for (const std::string_view output : request.output_filter) {
    message.add_output_filter(std::string(output));
  }
  for (const Column& column : request.columns()) {
    tensorflow::TensorProto& tensor = (*message.mutable_inputs())[std::string(column.name)];
    tensor.set_dtype(static_cast<tensorflow::DataType>(column.dtype));
    for (const int64_t dim : column.dims) tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
    SetValues(column, &tensor);
  }
  return message;
}

tensorflow::serving::Input ToInput(const ExampleInput& input) {
  tensorflow::serving::Input message;
  if (input.context.empty()) {
    auto* list = message.mutable_example_list();
    for (const Bytes& example : input.examples) {
      list->add_examples()->ParseFromString(example.ToString());
    }
  } else {
    auto* list = message.mutable_example_list_with_context();
    list->mutable_context()->ParseFromString(input.context);
    for (const Bytes& example : input.examples) {
      list->add_examples()->ParseFromString(example.ToString());
    }
  }
  return message;
}

}  // namespace colcast::inference
