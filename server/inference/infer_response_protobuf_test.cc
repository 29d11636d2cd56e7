#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/protos/open_inference.pb.h"
#include "server/wire/infer.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

inference::ModelInferResponse Write(const std::vector<OutputColumn>& outputs,
                                    PredictResponse response = {}) {
  response.outputs = outputs;
  std::string bytes;
  EXPECT_TRUE(WriteInferResponse(response, MakeString(&bytes)).ok());
  inference::ModelInferResponse parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.SerializeAsString(), bytes);  // protobuf would write the same bytes
  return parsed;
}

TEST(InferResponseTest, HasModelVersionAndRequestId) {
  PredictResponse response;
  response.model_name = "ranker";
  response.version = 12;
  response.id = "request 7";
  const auto parsed = Write({}, response);
  EXPECT_EQ(parsed.model_name(), "ranker");
  EXPECT_EQ(parsed.model_version(), "12");
  EXPECT_EQ(parsed.id(), "request 7");
}

TEST(InferResponseTest, WritesNumbersInMemoryOrder) {
  const std::vector<float> scores = {0.5, -1, 3};
  const std::vector<int64_t> dims = {3, 1};
  const auto parsed = Write({{"score", DT_FLOAT, dims, scores.data(), nullptr}});
  ASSERT_EQ(parsed.outputs_size(), 1);
  EXPECT_EQ(parsed.outputs(0).name(), "score");
  EXPECT_EQ(parsed.outputs(0).datatype(), "FP32");
  EXPECT_THAT(parsed.outputs(0).shape(), ElementsAre(3, 1));
  EXPECT_FALSE(parsed.outputs(0).has_contents());
  EXPECT_THAT(parsed.raw_output_contents(), ElementsAre(Raw(scores)));
}

TEST(InferResponseTest, WritesStringsBehindTheirLengths) {
  const std::vector<std::string> texts = {"ab", "", std::string(300, 'x')};
  const std::vector<int64_t> dims = {3};
  const auto parsed = Write({{"tag", DT_STRING, dims, texts.data(), StringAt}});
  EXPECT_EQ(parsed.outputs(0).datatype(), "BYTES");
  EXPECT_THAT(parsed.raw_output_contents(),
              ElementsAre("\x02\0\0\0ab\0\0\0\0\x2c\x01\0\0"s + texts[2]));
}

TEST(InferResponseTest, EveryOutputHasRawContentsEvenIfTheyAreEmpty) {
  const std::vector<int64_t> none = {0, 4}, scalar = {};
  const double one = 1;
  const auto parsed =
      Write({{"a", DT_INT64, none, nullptr, nullptr}, {"b", DT_DOUBLE, scalar, &one, nullptr}});
  EXPECT_THAT(parsed.outputs(0).shape(), ElementsAre(0, 4));
  EXPECT_EQ(parsed.outputs(1).shape_size(), 0);
  EXPECT_THAT(parsed.raw_output_contents(), ElementsAre("", Raw<double>({1})));
}

TEST(InferResponseTest, RefusesADtypeThatTheProtocolDoesNotHave) {
  const std::vector<int64_t> dims = {1};
  const std::vector<OutputColumn> outputs = {{"wave", DT_COMPLEX64, dims, nullptr, nullptr}};
  PredictResponse response;
  response.outputs = outputs;
  std::string bytes;
  const Status status = WriteInferResponse(response, MakeString(&bytes));
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_THAT(status.message, HasSubstr("\"wave\""));
  EXPECT_THAT(status.message, HasSubstr("DT_COMPLEX64"));
}

}  // namespace
}  // namespace colcast
