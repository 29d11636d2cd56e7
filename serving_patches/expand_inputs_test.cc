// The fork's entry, side by side with the function of TensorFlow it replaces.
#include "serving_patches/expand_inputs.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tensorflow/cc/saved_model/util.h"

namespace colcast {
namespace {

using google::protobuf::Map;
using tensorflow::SignatureDef;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Request = std::map<std::string, TensorProto>;

SignatureDef Scoring() {
  SignatureDef signature;
  const char text[] = R"pb(
    inputs {
      key: "user"
      value {
        name: "u:0"
        dtype: DT_INT64
        tensor_shape { dim { size: -1 } }
      }
    }
    inputs {
      key: "item"
      value {
        name: "i:0"
        dtype: DT_INT64
        tensor_shape { dim { size: -1 } }
      }
    }
    inputs {
      key: "bias"
      value {
        name: "b:0"
        dtype: DT_INT64
        tensor_shape { dim { size: -1 } }
      }
    }
    defaults {
      key: "bias"
      value {
        dtype: DT_INT64
        tensor_shape { dim { size: 1 } }
        int64_val: 100
      }
    }
  )pb";
  if (!google::protobuf::TextFormat::ParseFromString(text, &signature)) ADD_FAILURE();
  return signature;
}

TensorProto Column(const std::vector<int64_t>& values) {
  TensorProto proto;
  proto.set_dtype(tensorflow::DT_INT64);
  proto.mutable_tensor_shape()->add_dim()->set_size(values.size());
  for (const int64_t value : values) proto.add_int64_val(value);
  return proto;
}

std::map<std::string, std::vector<int64_t>> ByName(const NamedTensors& tensors) {
  std::map<std::string, std::vector<int64_t>> result;
  for (const auto& [name, tensor] : tensors) {
    const auto flat = tensor.flat<int64_t>();
    result[name].assign(flat.data(), flat.data() + flat.size());
  }
  return result;
}

absl::Status Expanded(const Request& request, NamedTensors& inputs) {
  const Map<std::string, TensorProto> sent(request.begin(), request.end());
  return ExpandedInputValues(Scoring(), sent, inputs);
}

absl::Status Stock(const Request& request, NamedTensors& inputs) {
  const Map<std::string, TensorProto> sent(request.begin(), request.end());
  return tensorflow::saved_model::GetInputValues(Scoring(), sent, inputs);
}

TEST(ExpandedInputValuesTest, ExpandsWhatCameOnceAndTheDefault) {
  NamedTensors inputs;
  const absl::Status status =
      Expanded({{"user", Column({405})}, {"item", Column({1, 2, 3})}}, inputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(ByName(inputs), ElementsAre(std::pair("b:0", std::vector<int64_t>{100, 100, 100}),
                                          std::pair("i:0", std::vector<int64_t>{1, 2, 3}),
                                          std::pair("u:0", std::vector<int64_t>{405, 405, 405})));
}

TEST(ExpandedInputValuesTest, ARequestWithAllRowsIsWhatItWasBefore) {
  const Request request{
      {"user", Column({4, 5})}, {"item", Column({1, 2})}, {"bias", Column({0, 1})}};
  NamedTensors expanded, stock;
  ASSERT_TRUE(Expanded(request, expanded).ok());
  ASSERT_TRUE(Stock(request, stock).ok());
  EXPECT_EQ(ByName(expanded), ByName(stock));
}

// TF Serving's own tests send half_plus_two, which declares [?,1], a scalar.
TEST(ExpandedInputValuesTest, ASignatureOfOneInputIsNotLookedAt) {
  SignatureDef signature = Scoring();
  signature.mutable_inputs()->erase("item");
  signature.mutable_inputs()->erase("bias");
  TensorProto matrix = Column({1, 2});
  matrix.mutable_tensor_shape()->add_dim()->set_size(1);
  const Request request{{"user", matrix}};
  NamedTensors inputs;
  ASSERT_TRUE(ExpandedInputValues(
                  signature, Map<std::string, TensorProto>(request.begin(), request.end()), inputs)
                  .ok());
  EXPECT_EQ(inputs.front().second.dims(), 2);
}

TEST(ExpandedInputValuesTest, AppendsToWhatIsThere) {
  NamedTensors inputs{{"before:0", Tensor(int64_t{1})}};
  const Request request{{"user", Column({4})}, {"item", Column({1})}};
  ASSERT_TRUE(Expanded(request, inputs).ok());
  EXPECT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs.front().first, "before:0");
}

TEST(ExpandedInputValuesTest, FailsWithTheCodeItHadBefore) {
  TensorProto broken = Column({});
  broken.mutable_tensor_shape()->mutable_dim(0)->set_size(2);
  broken.set_tensor_content("abc");
  const std::vector<std::pair<Request, std::string>> mistakes = {
      {{{"item", Column({1})}}, "user"},
      {{{"user", Column({1})}, {"item", Column({1})}, {"other", Column({1})}}, "other"},
      {{{"user", broken}, {"item", Column({1, 2})}}, "user"},
  };
  for (const auto& [request, culprit] : mistakes) {
    NamedTensors inputs, stock;
    const absl::Status status = Expanded(request, inputs);
    EXPECT_EQ(status.code(), Stock(request, stock).code());
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"" + culprit + "\""));
    EXPECT_TRUE(inputs.empty());
  }
}

// The switch is read once a process: this test's body runs in one of its own.
TEST(ExpandedInputValuesDeathTest, TheEnvironmentSwitchesItOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_switched_off = [] {
    setenv("TF_SERVING_EXPAND_USER_FEATURES", "0", 1);
    NamedTensors inputs;
    const Request request{{"user", Column({405})}, {"item", Column({1, 2})}};
    const bool ok = Expanded(request, inputs).ok();
    const bool unexpanded = ByName(inputs)["u:0"] == std::vector<int64_t>{405};
    std::exit(ok && unexpanded ? 0 : 1);
  };
  EXPECT_EXIT(run_switched_off(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace colcast
