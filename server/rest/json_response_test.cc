#include "server/rest/json_response.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace colcast::http {
namespace {

const float kFloats[] = {0.1f,
                         2,
                         -1e30f,
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(),
                         16777216};
const int64_t kIntegers[] = {std::numeric_limits<int64_t>::min(), 0, 7};
const uint8_t kBools[] = {1, 0};
const std::vector<std::string> kStrings = {"a\"\n", "\xFF\x01", ""};

std::string_view StringAt(const void* data, int64_t index) {
  return (*static_cast<const std::vector<std::string>*>(data))[index];
}

struct Output {
  const char* name;
  DataType dtype;
  std::vector<int64_t> dims;
  const void* data;
};

// Writes JSON without whitespace between the values.
std::string Write(const std::vector<Output>& outputs, JsonFormat format) {
  std::vector<OutputColumn> columns;
  for (const Output& output : outputs) {
    columns.push_back({output.name, output.dtype, output.dims, output.data, StringAt});
  }
  std::string json;
  const Status status = WriteOutputs(columns, format, &json);
  if (!status.ok()) return status.message;
  std::string compact;
  for (const char c : json) {
    if (c != ' ' && c != '\n') compact += c;
  }
  return compact;
}

TEST(WriteOutputs, TheOnlyOutputHasNoName) {
  EXPECT_EQ(Write({{"y", DT_FLOAT, {2, 3}, kFloats}}, JsonFormat::kColumns),
            R"({"outputs":[[0.1,2.0,-1e+30],[NaN,Infinity,16777216.0]]})");
  EXPECT_EQ(Write({{"y", DT_FLOAT, {2, 3}, kFloats}}, JsonFormat::kRows),
            R"({"predictions":[[0.1,2.0,-1e+30],[NaN,Infinity,16777216.0]]})");
  EXPECT_EQ(Write({{"y", DT_INT64, {}, kIntegers}}, JsonFormat::kColumns),
            R"({"outputs":-9223372036854775808})");
  EXPECT_EQ(Write({{"y", DT_INT64, {0}, kIntegers}}, JsonFormat::kRows), R"({"predictions":[]})");
}

TEST(WriteOutputs, SeveralOutputsHaveNames) {
  const std::vector<Output> outputs = {{"a", DT_INT64, {2}, kIntegers},
                                       {"b", DT_BOOL, {2}, kBools}};
  EXPECT_EQ(Write(outputs, JsonFormat::kColumns),
            R"({"outputs":{"a":[-9223372036854775808,0],"b":[true,false]}})");
  EXPECT_EQ(Write(outputs, JsonFormat::kRows),
            R"({"predictions":[{"a":-9223372036854775808,"b":true},{"a":0,"b":false}]})");
}

TEST(WriteOutputs, StringsAreTextUnlessTheNameEndsInBytes) {
  EXPECT_EQ(Write({{"y", DT_STRING, {1}, &kStrings}}, JsonFormat::kColumns),
            R"({"outputs":["a\"\n"]})");
  EXPECT_EQ(Write({{"y_bytes", DT_STRING, {3}, &kStrings}}, JsonFormat::kColumns),
            R"({"outputs":[{"b64":"YSIK"},{"b64":"/wE="},{"b64":""}]})");
}

TEST(WriteOutputs, StringsThatAreNotUtf8AreBase64) {
  EXPECT_EQ(Write({{"y", DT_STRING, {3}, &kStrings}}, JsonFormat::kColumns),
            R"({"outputs":["a\"\n",{"b64":"/wE="},""]})");
}

TEST(WriteOutputs, ErrorsNameOutputsThatCannotBeWritten) {
  EXPECT_EQ(Write({}, JsonFormat::kColumns), "the signature has no outputs");
  EXPECT_EQ(Write({{"y", DT_HALF, {1}, kFloats}}, JsonFormat::kColumns),
            "output \"y\": DT_HALF cannot be represented in JSON; ask for it over gRPC");
  EXPECT_EQ(Write({{"y", DT_FLOAT, {}, kFloats}}, JsonFormat::kRows),
            "output \"y\" is a scalar and has no rows; send \"inputs\" in place of \"instances\"");
  EXPECT_EQ(
      Write({{"a", DT_INT64, {2}, kIntegers}, {"b", DT_INT64, {3}, kIntegers}}, JsonFormat::kRows),
      "output \"b\" has 3 rows, output \"a\" 2; send \"inputs\" in place of \"instances\"");
}

TEST(WriteClassifications, WritesLabelsAndScoresPerExample) {
  tensorflow::serving::ClassificationResult result;
  EXPECT_EQ(WriteClassifications(result), "{\n    \"results\": []\n}");
  auto* const classes = result.add_classifications();
  classes->add_classes()->set_label("a");
  classes->add_classes()->set_score(0.5);
  result.add_classifications();
  EXPECT_EQ(WriteClassifications(result),
            "{\n    \"results\": [[[\"a\", 0.0], [\"\", 0.5]], []]\n}");
}

TEST(WriteRegressions, WritesOneValuePerExample) {
  tensorflow::serving::RegressionResult result;
  result.add_regressions()->set_value(1);
  result.add_regressions()->set_value(0.25);
  EXPECT_EQ(WriteRegressions(result), "{\n    \"results\": [1.0, 0.25]\n}");
}

}  // namespace
}  // namespace colcast::http
