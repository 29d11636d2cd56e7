#include "server/rest/model_api.h"

#include <gtest/gtest.h>

#include <string>

#include "server/inference/testing.h"

namespace colcast::http {
namespace {

TEST(MetadataAnswersTest, EachVersionsAnswerIsWrittenOnce) {
  const char* const signature = R"(signature_def { key: "rank" value { method_name: "m" } })";
  const auto servable = inference::MakeServable(3, signature);
  MetadataAnswers answers;
  Response first, second, other;
  ASSERT_TRUE(answers.Find(servable, &first).ok());
  EXPECT_NE(first.body.find("rank"), std::string::npos);
  EXPECT_FALSE(first.gzipped.empty());
  // Changes the servable, so that a newly written answer would differ.
  const_cast<inference::SignatureMap&>(servable->signatures()).clear();
  ASSERT_TRUE(answers.Find(servable, &second).ok());
  EXPECT_EQ(second.body, first.body);
  ASSERT_TRUE(answers.Find(inference::MakeServable(4, signature), &other).ok());
  EXPECT_NE(other.body, first.body);
}

using std::string_literals::operator""s;

// "METHOD NAME version=V label=L", or the error.
std::string Parse(std::string_view http_method, std::string_view target) {
  constexpr const char* kMethods[] = {"status", "metadata", "predict", "classify", "regress"};
  RestCall call;
  const Status status = ParseRestPath(http_method, target, &call);
  if (!status.ok()) return status.message;
  std::string text = kMethods[static_cast<int>(call.method)] + " "s + call.model.name;
  if (call.model.version) text += " version=" + std::to_string(*call.model.version);
  if (call.model.version_label) text += " label=" + *call.model.version_label;
  return text;
}

TEST(RestPath, NamesMethodModelAndVersion) {
  const struct {
    const char* http_method;
    const char* target;
    std::string expected;
  } kCases[] = {
      {"POST", "/v1/models/m:predict", "predict m"},
      {"POST", "/v1/models/m/versions/12:classify", "classify m version=12"},
      {"POST", "/v1/models/m/labels/canary:regress", "regress m label=canary"},
      {"POST", "/v1/models/a%3Ab:predict", "predict a:b"},
      {"GET", "/v1/models/m", "status m"},
      {"GET", "/v1/models/m/versions/007", "status m version=7"},
      {"GET", "/v1/models/m/metadata", "metadata m"},
      {"GET", "/v1/models/m/labels/stable/metadata", "metadata m label=stable"},
      {"GET", "/v1/models/metadata", "status metadata"},
      {"GET", "/V1/Models/M/Versions/1", "status M version=1"},
      // Names are decoded once.
      {"GET", "/v1/models/..%2f..%2Fetc%2fpasswd", "status ../../etc/passwd"},
      {"GET", "/v1/models/..", "status .."},
      {"GET", "/v1/models/a%00b", "status a\0b"s},
      {"GET", "/v1/models/%252f", "status %2f"},
      {"GET", "/v1/models/100%", "status 100%"},
      {"GET", "/v1/models/%zz%4", "status %zz%4"},
      {"GET", "/v1/models", "Missing model name in request."},
      {"GET", "/v1/models/m/versions/9223372036854775808",
       "Failed to convert version: 9223372036854775808 to numeric."},
  };
  for (const auto& [http_method, target, expected] : kCases) {
    EXPECT_EQ(Parse(http_method, target), expected) << target;
  }
}

TEST(RestPath, OtherPathsAreMalformed) {
  const char* const kMalformed[][2] = {
      {"GET", "/v1/foo"},
      {"GET", "/v1/modelsm"},
      {"GET", "/v1/models/"},
      {"GET", "/v1/models//versions/1"},
      {"GET", "/v1/models/m/"},
      {"GET", "/v1/models/m:predict"},
      {"GET", "/v1/models/m/versions"},
      {"GET", "/v1/models/m/versions/one"},
      {"GET", "/v1/models/m/versions/-1"},
      {"GET", "/v1/models/m/version/1"},
      {"GET", "/v1/models/m/versions/1/labels/x"},
      {"POST", "/v1/models"},
      {"POST", "/v1/models/m"},
      {"POST", "/v1/models/:predict"},
      {"POST", "/v1/models/m:Predict"},
      {"POST", "/v1/models/m:multiInference"},
      {"POST", "/v1/models/m:predict?x=1"},
      {"POST", "/v1/models/m/metadata:predict"},
      {"POST", "/v1/models/a:b:predict"},
      {"PUT", "/v1/models/m:predict"},
      {"DELETE", "/v1/models/m"},
      {"HEAD", "/v1/models/m"},
  };
  for (const auto& [method, target] : kMalformed) {
    RestCall call;
    const Status status = ParseRestPath(method, target, &call);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << target;
    EXPECT_EQ(status.message, "Malformed request: "s + method + " " + target);
  }
}

TEST(RestPath, TheOpenInferenceProtocolIsServedOverGrpcOnly) {
  for (const char* const target : {"/v2", "/v2/health/ready", "/v2/models/m/infer"}) {
    RestCall call;
    const Status status = ParseRestPath("POST", target, &call);
    EXPECT_EQ(status.code, StatusCode::kNotFound) << target;
    EXPECT_NE(status.message.find("over gRPC only"), std::string::npos) << status.message;
  }
}

}  // namespace
}  // namespace colcast::http
