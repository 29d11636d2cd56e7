// Tests that TF Serving's Predict calls the fork's hook. Built only by Bazel in the fork, which has
// TF Serving's sources.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tensorflow_serving/servables/tensorflow/predict_util.h"

namespace colcast {
namespace {

void Declare(const std::string& alias, tensorflow::SignatureDef* signature) {
  tensorflow::TensorInfo& info = (*signature->mutable_inputs())[alias];
  info.set_name(alias + ":0");
  info.set_dtype(tensorflow::DT_INT64);
  info.mutable_tensor_shape()->add_dim()->set_size(-1);
}

void Send(const std::string& alias, const std::vector<int64_t>& values,
          tensorflow::serving::PredictRequest* request) {
  tensorflow::TensorProto& column = (*request->mutable_inputs())[alias];
  column.set_dtype(tensorflow::DT_INT64);
  column.mutable_tensor_shape()->add_dim()->set_size(values.size());
  for (const int64_t value : values) column.add_int64_val(value);
}

TEST(HookTest, PredictExpandsTheUsersRow) {
  tensorflow::SignatureDef signature;
  signature.set_method_name("tensorflow/serving/predict");
  Declare("user", &signature);
  Declare("item", &signature);
  tensorflow::serving::PredictRequest request;
  Send("user", {405}, &request);
  Send("item", {1, 2, 3}, &request);

  std::vector<std::pair<std::string, tensorflow::Tensor>> inputs;
  std::vector<std::string> output_names, output_aliases;
  ASSERT_TRUE(tensorflow::serving::internal::PreProcessPrediction(signature, request, &inputs,
                                                                  &output_names, &output_aliases)
                  .ok());
  ASSERT_EQ(inputs.size(), 2u);
  for (const auto& [name, tensor] : inputs) EXPECT_EQ(tensor.dim_size(0), 3) << name;
}

}  // namespace
}  // namespace colcast
