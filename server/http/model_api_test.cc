#include "server/http/model_api.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace colcast::http
