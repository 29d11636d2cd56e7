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

TEST(MetadataAnswersTest, EachVersionsIsWrittenOnce) {
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

}  // namespace
}  // namespace colcast::http
