#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <utility>
#include <vector>

#include "server/inference/testing.h"
#include "server/pages/pages.h"

namespace colcast::pages {
namespace {

using models::ModelSnapshot;
using models::VersionSnapshot;
using models::VersionState;

VersionSnapshot Version(int64_t number, VersionState state, Status error = OkStatus()) {
  VersionSnapshot version;
  version.status = {number, state, std::move(error)};
  version.path = "/models/m/" + std::to_string(number);
  return version;
}

// The parsed JSON that `write(&json)` produces.
template <typename Write>
rapidjson::Document Read(Write&& write) {
  JsonWriter json;
  json.Object([&] { write(&json); });
  rapidjson::Document document;
  document.Parse(json.text().c_str());
  EXPECT_FALSE(document.HasParseError()) << json.text();
  return document;
}

rapidjson::Document Models(const std::vector<VersionSnapshot>& versions) {
  return Read([&](JsonWriter* json) {
    WriteModels({ModelSnapshot{"m", "/models/m", 0, 0, versions}}, json);
  });
}

std::string Text(const rapidjson::Value& value) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  value.Accept(writer);
  return text.GetString();
}

TEST(ModelsSectionTest, EachVersionHasItsStateAndError) {
  const struct {
    VersionState state;
    Status error;
    const char* name;
    const char* code;
  } kCases[] = {
      {VersionState::kStart, OkStatus(), "START", "OK"},
      {VersionState::kLoading, OkStatus(), "LOADING", "OK"},
      {VersionState::kAvailable, OkStatus(), "AVAILABLE", "OK"},
      {VersionState::kUnloading, OkStatus(), "UNLOADING", "OK"},
      {VersionState::kEnd, OkStatus(), "END", "OK"},
      {VersionState::kEnd, Internal("<broken>"), "END", "INTERNAL"},
  };
  for (const auto& one : kCases) {
    const rapidjson::Document json = Models({Version(3, one.state, one.error)});
    const rapidjson::Value& version = json["models"][0]["versions"][0];
    EXPECT_STREQ(version["version"].GetString(), "3");
    EXPECT_STREQ(version["state"].GetString(), one.name);
    EXPECT_STREQ(version["error_code"].GetString(), one.code);
    EXPECT_EQ(version["error"].GetString(), one.error.message);
  }
}

TEST(ModelsSectionTest, LabelsAndPathsArePreserved) {
  VersionSnapshot version = Version(int64_t{9007199254740993}, VersionState::kAvailable);
  version.labels = {"<b>", "\"canary\""};
  const rapidjson::Document json = Models({version});
  EXPECT_EQ(
      Text(json["models"]),
      R"([{"name":"m","base_path":"/models/m","versions":[{"version":"9007199254740993",)"
      R"("state":"AVAILABLE","error_code":"OK","error":"","path":"/models/m/9007199254740993",)"
      R"("labels":["<b>","\"canary\""],"signatures":[]}]}])");
}

TEST(ModelsSectionTest, SignaturesListTheirColumns) {
  VersionSnapshot version = Version(3, VersionState::kAvailable);
  version.servable = inference::MakeServable(3, R"(
    signature_def { key: "late" value {
      inputs { key: "item" value { dtype: DT_FLOAT
        tensor_shape { dim { size: -1 } dim { size: 3 } dim { size: -1 } } } }
      inputs { key: "age" value { dtype: DT_INT64 tensor_shape { dim { size: 1 } } } }
      inputs { key: "now" value { dtype: DT_STRING tensor_shape {} } }
      outputs { key: "score" value { dtype: DT_FLOAT tensor_shape { unknown_rank: true } } } } }
    signature_def { key: "__saved_model_init_op" value {} })");
  const rapidjson::Document json = Models({version});
  EXPECT_EQ(
      Text(json["models"][0]["versions"][0]["signatures"]),
      R"([{"name":"late","graphs":[],"inputs":[{"name":"age","dtype":"DT_INT64","shape":[1]},)"
      R"({"name":"item","dtype":"DT_FLOAT","shape":[-1,3,-1]},)"
      R"({"name":"now","dtype":"DT_STRING","shape":[]}],)"
      R"("outputs":[{"name":"score","dtype":"DT_FLOAT","shape":null}]}])");
}

}  // namespace
}  // namespace colcast::pages
