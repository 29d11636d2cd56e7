// engine/fuzz/wire_fuzz.cc compares the tensors of every dtype with TensorFlow's.
#include "server/wire/predict_response.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

std::string Write(const PredictResponse& response) {
  std::string bytes;
  EXPECT_TRUE(WritePredictResponse(response, MakeString(&bytes)).ok());
  return bytes;
}

std::string Header(DataType dtype, int64_t size) {
  return VarintField(1, dtype) + BytesField(2, BytesField(2, VarintField(1, size)));
}

TEST(PredictResponseTest, WritesTheExpectedBytes) {
  const std::vector<int64_t> dims = {2, 1};
  const std::vector<float> scores = {1, 2};
  const OutputColumn output = {"score", DT_FLOAT, dims, scores.data(), nullptr};
  PredictResponse response;
  response.model_name = "m";
  response.signature_name = "columnar";
  response.version = 300;
  response.outputs = Span<OutputColumn>(&output, 1);
  EXPECT_EQ(Write(response),
            "\x0a\x1f\x0a\x05score"                                     // outputs: key
            "\x12\x16\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01"  // value: float, [2,1]
            "\x2a\x08\0\0\x80\x3f\0\0\0\x40"                            // float_val
            "\x12\x12\x0a\x01m\x12\x03\x08\xac\x02\x1a\x08"
            "columnar"s);  // model_spec
}

TEST(PredictResponseTest, ManyOutputsAreWrittenInOrder) {
  const std::vector<float> scores = {1};
  const std::vector<int64_t> dims = {1};
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("output" + std::to_string(i));
  std::vector<OutputColumn> outputs;
  for (const std::string& name : names) {
    outputs.push_back({name, DT_FLOAT, dims, scores.data(), nullptr});
  }
  PredictResponse response;
  response.outputs = outputs;
  std::string expected;
  for (const std::string& name : names) {
    expected += BytesField(
        1, BytesField(1, name) + BytesField(2, Header(DT_FLOAT, 1) + BytesField(5, Raw(scores))));
  }
  EXPECT_EQ(Write(response).substr(0, expected.size()), expected);
}

TEST(PredictResponseTest, AFailedAllocationEndsWriting) {
  const auto refuse = [](size_t, uint8_t**) { return ResourceExhausted("no room"); };
  EXPECT_EQ(WritePredictResponse(PredictResponse(), refuse).message, "no room");
}

TEST(PredictResponseTest, RefusesUnsupportedDtypes) {
  const OutputColumn output = {"table", DT_RESOURCE, {}, nullptr, nullptr};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  std::string bytes;
  const Status status = WritePredictResponse(response, MakeString(&bytes));
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_EQ(status.message, "output \"table\": DT_RESOURCE cannot be sent");
}

}  // namespace
}  // namespace colcast
