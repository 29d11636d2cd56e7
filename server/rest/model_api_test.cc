#include "server/rest/model_api.h"

#include <gtest/gtest.h>

#include <string>

#include "server/inference/testing.h"

namespace colcast::http {
namespace {

TEST(WriteModelStatus, IsAGetModelStatusResponse) {
  models::VersionStatus version;
  version.version = 12;
  version.state = models::VersionState::kEnd;
  version.error = NotFound("gone \"away\"");
  std::string json;
  ASSERT_TRUE(WriteModelStatus({version}, &json).ok());
  EXPECT_EQ(json,
            "{\n"
            " \"model_version_status\": [\n"
            "  {\n"
            "   \"version\": \"12\",\n"
            "   \"state\": \"END\",\n"
            "   \"status\": {\n"
            "    \"error_code\": \"NOT_FOUND\",\n"
            "    \"error_message\": \"gone \\\"away\\\"\"\n"
            "   }\n"
            "  }\n"
            " ]\n"
            "}\n");
  json.clear();
  ASSERT_TRUE(WriteModelStatus({}, &json).ok());
  EXPECT_EQ(json, "{\n \"model_version_status\": []\n}\n");
}

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

RestCall Parse(std::string_view method, std::string_view target) {
  RestCall call;
  const Status status = ParseRestPath(method, target, &call);
  EXPECT_TRUE(status.ok()) << status.message;
  return call;
}

TEST(RestPath, ModelsVersionsAndLabels) {
  const RestCall latest = Parse("POST", "/v1/models/m:predict");
  EXPECT_EQ(latest.method, RestMethod::kPredict);
  EXPECT_EQ(latest.model.name, "m");
  EXPECT_FALSE(latest.model.version || latest.model.version_label);
  EXPECT_EQ(Parse("POST", "/v1/models/m/versions/12:classify").model.version, 12);
  EXPECT_EQ(Parse("POST", "/v1/models/m/labels/canary:regress").model.version_label, "canary");
  EXPECT_EQ(Parse("GET", "/v1/models/m/versions/007").model.version, 7);
}

TEST(RestPath, StatusAndMetadata) {
  EXPECT_EQ(Parse("GET", "/v1/models/m").method, RestMethod::kStatus);
  EXPECT_EQ(Parse("GET", "/v1/models/m/metadata").method, RestMethod::kMetadata);
  EXPECT_EQ(Parse("GET", "/v1/models/m/labels/stable/metadata").model.version_label, "stable");
  EXPECT_EQ(Parse("GET", "/v1/models/metadata").model.name, "metadata");
}

TEST(RestPath, OnlyNamesAreCaseSensitive) {
  EXPECT_EQ(Parse("GET", "/V1/Models/M/Versions/1").model.name, "M");
}

TEST(RestPath, NamesAreDecodedOnce) {
  EXPECT_EQ(Parse("GET", "/v1/models/..%2f..%2Fetc%2fpasswd").model.name, "../../etc/passwd");
  EXPECT_EQ(Parse("GET", "/v1/models/..").model.name, "..");
  EXPECT_EQ(Parse("GET", "/v1/models/a%00b").model.name, "a\0b"s);
  EXPECT_EQ(Parse("GET", "/v1/models/%252f").model.name, "%2f");
  EXPECT_EQ(Parse("GET", "/v1/models/100%").model.name, "100%");
  EXPECT_EQ(Parse("GET", "/v1/models/%zz%4").model.name, "%zz%4");
  EXPECT_EQ(Parse("POST", "/v1/models/a%3Ab:predict").model.name, "a:b");
  EXPECT_EQ(Parse("GET", "/v1/models/" + std::string(10000, 'x')).model.name.size(), 10000);
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

TEST(RestPath, MissingAndTooLargePartsAreNamed) {
  RestCall call;
  EXPECT_EQ(ParseRestPath("GET", "/v1/models", &call).message, "Missing model name in request.");
  EXPECT_EQ(ParseRestPath("GET", "/v1/models/m/versions/9223372036854775808", &call).message,
            "Failed to convert version: 9223372036854775808 to numeric.");
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
