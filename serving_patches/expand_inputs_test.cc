// Compares the fork's entry point with the TensorFlow function that it replaces.
#include "serving_patches/expand_inputs.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
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

TensorProto Column(const std::vector<int64_t>& values) {
  TensorProto proto;
  proto.set_dtype(tensorflow::DT_INT64);
  proto.mutable_tensor_shape()->add_dim()->set_size(values.size());
  for (const int64_t value : values) proto.add_int64_val(value);
  return proto;
}

// A signature with an int64 input of each name and shape.
SignatureDef Declared(const std::map<std::string, std::vector<int64_t>>& shapes) {
  SignatureDef signature;
  for (const auto& [name, dims] : shapes) {
    auto& info = (*signature.mutable_inputs())[name];
    info.set_name(name + ":0");
    info.set_dtype(tensorflow::DT_INT64);
    for (const int64_t dim : dims) info.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  return signature;
}

SignatureDef Scoring() {
  SignatureDef signature = Declared({{"bias", {-1}}, {"item", {-1}}, {"user", {-1}}});
  (*signature.mutable_defaults())["bias"] = Column({100});
  return signature;
}

using Values = std::map<std::string, std::vector<int64_t>>;

Values ByName(const NamedTensors& tensors) {
  Values result;
  for (const auto& [name, tensor] : tensors) {
    const auto flat = tensor.flat<int64_t>();
    result[name].assign(flat.data(), flat.data() + flat.size());
  }
  return result;
}

absl::Status Expanded(const Request& request, NamedTensors& inputs,
                      const SignatureDef& signature = Scoring()) {
  const Map<std::string, TensorProto> sent(request.begin(), request.end());
  return ExpandedInputValues(signature, sent, inputs);
}

absl::Status Stock(const Request& request, NamedTensors& inputs) {
  const Map<std::string, TensorProto> sent(request.begin(), request.end());
  return tensorflow::saved_model::GetInputValues(Scoring(), sent, inputs);
}

TEST(ExpandedInputValuesTest, ExpandsOneRowInputsAndDefaults) {
  NamedTensors inputs;
  const absl::Status status =
      Expanded({{"user", Column({405})}, {"item", Column({1, 2, 3})}}, inputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(
      ByName(inputs),
      (Values{{"bias:0", {100, 100, 100}}, {"item:0", {1, 2, 3}}, {"user:0", {405, 405, 405}}}));
}

TEST(ExpandedInputValuesTest, EveryCopyOfAStringCountsTowardsTheLimit) {
  SignatureDef signature = Scoring();
  (*signature.mutable_inputs())["user"].set_dtype(tensorflow::DT_STRING);
  TensorProto name;
  name.set_dtype(tensorflow::DT_STRING);
  name.mutable_tensor_shape()->add_dim()->set_size(1);
  name.add_string_val(std::string(20'000, 'u'));
  NamedTensors inputs;
  const Request request{{"user", name}, {"item", Column(std::vector<int64_t>(60'000))}};
  const absl::Status status = Expanded(request, inputs, signature);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("input \"user\""));
  const Request small{{"user", name}, {"item", Column({1, 2})}};
  ASSERT_TRUE(Expanded(small, inputs, signature).ok());
  EXPECT_EQ(inputs.back().second.flat<tensorflow::tstring>()(1), name.string_val(0));
}

TEST(ExpandedInputValuesTest, ARequestWithAllRowsIsUnchanged) {
  const Request request{
      {"user", Column({4, 5})}, {"item", Column({1, 2})}, {"bias", Column({0, 1})}};
  NamedTensors expanded, stock;
  ASSERT_TRUE(Expanded(request, expanded).ok());
  ASSERT_TRUE(Stock(request, stock).ok());
  EXPECT_EQ(ByName(expanded), ByName(stock));
}

TEST(ExpandedInputValuesTest, PartsOfSparseAndRaggedTensorsAreUnchanged) {
  TensorProto indices = Column({1, 0});
  indices.mutable_tensor_shape()->clear_dim();
  for (const int size : {1, 2}) indices.mutable_tensor_shape()->add_dim()->set_size(size);
  const std::pair<SignatureDef, Request> cases[] = {
      {Declared({{"x", {-1, 2}}, {"x_1", {-1}}, {"x_2", {2}}, {"price", {-1}}}),
       {{"x", indices}, {"x_1", Column({7})}, {"x_2", Column({2, 9})}, {"price", Column({1, 2})}}},
      {Declared({{"h", {-1}}, {"h_1", {-1}}, {"price", {-1}}}),
       {{"h", Column({7})}, {"h_1", Column({0, 1, 1})}, {"price", Column({1, 2})}}}};
  for (const auto& [signature, request] : cases) {
    NamedTensors inputs;
    ASSERT_TRUE(Expanded(request, inputs, signature).ok());
    for (const auto& [name, tensor] : inputs) {
      EXPECT_EQ(tensor.NumElements(), request.at(name.substr(0, name.size() - 2)).int64_val_size())
          << name;
    }
  }
}

TEST(ExpandedInputValuesTest, InputsNamedLikePartsAreExpanded) {
  const SignatureDef signature = Declared({{"item", {-1}}, {"item_1", {-1, 1}}, {"item_2", {2}}});
  TensorProto once = Column({7});
  once.mutable_tensor_shape()->add_dim()->set_size(1);
  const Request request{{"item", Column({1, 2, 3})}, {"item_1", once}, {"item_2", Column({4, 5})}};
  NamedTensors inputs;
  ASSERT_TRUE(Expanded(request, inputs, signature).ok());
  EXPECT_THAT(ByName(inputs)["item_1:0"], ElementsAre(7, 7, 7));
}

TEST(ExpandedInputValuesTest, StatesAreUnchanged) {
  SignatureDef signature = Declared({{"item_state/0", {-1}},
                                     {"row_to_user", {-1}},
                                     {"user_state/0", {-1}},
                                     {"user_state/row", {-1}}});
  for (const char* const alias : {"row_to_user", "user_state/row"}) {
    (*signature.mutable_defaults())[alias] = Column({0});
  }
  NamedTensors inputs;
  const Request request{{"item_state/0", Column({1, 2, 3})}, {"user_state/0", Column({70, 80})}};
  const absl::Status status = Expanded(request, inputs, signature);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ByName(inputs), (Values{{"item_state/0:0", {1, 2, 3}},
                                    {"row_to_user:0", {0, 0, 0}},
                                    {"user_state/0:0", {70, 80}},
                                    {"user_state/row:0", {0}}}));
}

// Needed because TF Serving's own tests send a scalar to half_plus_two, which declares [?,1].
TEST(ExpandedInputValuesTest, ASignatureOfOneInputIsUnchanged) {
  TensorProto matrix = Column({1, 2});
  matrix.mutable_tensor_shape()->add_dim()->set_size(1);
  NamedTensors inputs;
  ASSERT_TRUE(Expanded({{"user", matrix}}, inputs, Declared({{"user", {-1}}})).ok());
  EXPECT_EQ(inputs.front().second.dims(), 2);
}

TEST(ExpandedInputValuesTest, AppendsToTheInputs) {
  NamedTensors inputs{{"before:0", Tensor(int64_t{1})}};
  const Request request{{"user", Column({4})}, {"item", Column({1})}};
  ASSERT_TRUE(Expanded(request, inputs).ok());
  EXPECT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs.front().first, "before:0");
}

TEST(ExpandedInputValuesTest, ErrorsHaveTensorFlowsCodes) {
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

TEST(ExpandedInputValuesTest, ASmallRequestCannotFillTheMemory) {
  TensorProto item = Column({1});
  item.mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
  NamedTensors inputs;
  const absl::Status status = Expanded({{"user", Column({1})}, {"item", item}}, inputs);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("TF_SERVING_MAX_EXPANDED_BYTES is 1073741824"));
}

// A process reads the environment only once, so these tests start processes of their own.
class ExpandedInputValuesDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Prints the status and ends the process.
[[noreturn]] void ExpandAndExit(const char* variable, const char* value) {
  setenv(variable, value, 1);
  NamedTensors inputs;
  const Request request{{"user", Column({405})}, {"item", Column({1, 2})}};
  const absl::Status status = Expanded(request, inputs);
  const size_t user_rows = ByName(inputs)["user:0"].size();
  std::cerr << status << "; user has " << user_rows << " rows\n";
  std::exit(0);
}

TEST_F(ExpandedInputValuesDeathTest, TheEnvironmentTurnsExpansionOff) {
  EXPECT_EXIT(ExpandAndExit("TF_SERVING_EXPAND_USER_FEATURES", "0"), ::testing::ExitedWithCode(0),
              "OK; user has 1 rows");
}

TEST_F(ExpandedInputValuesDeathTest, TheEnvironmentSetsTheLimit) {
  const auto expect = [](const char* bytes, const char* answer) {
    EXPECT_EXIT(ExpandAndExit("TF_SERVING_MAX_EXPANDED_BYTES", bytes), ::testing::ExitedWithCode(0),
                answer);
  };
  expect("1000000", "OK; user has 2 rows");
  expect("1", "RESOURCE_EXHAUSTED: .*TF_SERVING_MAX_EXPANDED_BYTES is 1");
  for (const char* const wrong : {"1GiB", "-1", ""}) {
    expect(wrong, "FAILED_PRECONDITION: .*TF_SERVING_MAX_EXPANDED_BYTES=.*a number of bytes");
  }
}

}  // namespace
}  // namespace colcast
