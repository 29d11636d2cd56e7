#include "server/models/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace colcast::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const request_log::LogPlaces kAnywhere{"", /*anywhere=*/true};

std::vector<ModelConfig> Parse(const std::string& text) {
  std::vector<ModelConfig> models;
  const Status status = ParseModelConfig(text, "models.config", kAnywhere, &models);
  EXPECT_TRUE(status.ok()) << status.message;
  return models;
}

std::string ErrorOf(const std::string& text) {
  std::vector<ModelConfig> models;
  const Status status = ParseModelConfig(text, "models.config", kAnywhere, &models);
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  return status.message;
}

std::string OneModel(const std::string& fields) {
  return "model_config_list { config { " + fields + " } }";
}

constexpr char kRanker[] = R"(name: "ranker" base_path: "/m" model_platform: "tensorflow" )";

TEST(ModelConfigTest, ReadsModelsPoliciesAndLabels) {
  EXPECT_THAT(Parse("model_config_list {}"), IsEmpty());
  const ModelConfig plain = Parse(OneModel(kRanker))[0];
  EXPECT_EQ(plain.name, "ranker");
  EXPECT_EQ(plain.base_path, "/m");
  EXPECT_EQ(plain.policy.kind, VersionPolicy::Kind::kLatest);
  EXPECT_EQ(plain.policy.num_versions, 1u);
  EXPECT_THAT(plain.labels, IsEmpty());
  const auto with = [](const std::string& policy) {
    return Parse(OneModel(kRanker + ("model_version_policy { " + policy)))[0];
  };
  EXPECT_EQ(with("latest { num_versions: 3 } }").policy.num_versions, 3u);
  EXPECT_EQ(with("all {} }").policy.kind, VersionPolicy::Kind::kAll);
  const ModelConfig specific = with(
      "specific { versions: 7 versions: 2 versions: 7 } }"
      "version_labels { key: 'stable' value: 2 } version_labels { key: 'canary' value: 7 }");
  EXPECT_THAT(specific.policy.versions, ElementsAre(2, 7));
  EXPECT_THAT(specific.labels, ElementsAre(Pair("canary", 7), Pair("stable", 2)));
}

TEST(ModelConfigTest, ErrorsNameThePlaceOrTheModel) {
  const std::string platform = " model_platform: 'tensorflow'", ranker = kRanker;
  const std::pair<std::string, const char*> kCases[] = {
      {"model_config_list {\n  config { name 'a' }\n}",
       "models.config:2:17: Error parsing text-format tensorflow.serving.ModelServerConfig: "},
      {"model_config_list {\n config {\n  nome: 'a'\n } }", "nome"},
      {"model_config_list {", "models.config:1:"},
      {{"\x7f\0", 2}, "models.config is binary, expected"},
      {"", "no model_config_list"},
      {OneModel("base_path: '/m'" + platform), "base_path \"/m\" has no name"},
      {"model_config_list { config {" + ranker + "} config {" + ranker + "} }",
       "Illegal to list model ranker multiple times"},
      {OneModel("name: 'a' base_path: 'm'" + platform),
       "Expected model a to have an absolute path; got base_path \"m\""},
      {OneModel("name: 'a' base_path: 's3://m'" + platform),
       "\"a\": base_path s3://m is not on a local file system"},
      {OneModel("name: 'a' base_path: '/m\\0n'" + platform),
       "\"a\": base_path /m is followed by a NUL byte"},
      {OneModel("name: 'a' base_path: '/m' model_platform: 'caffe'"), "\"a\": platform \"caffe\""},
      {OneModel("name: 'a' base_path: '/m'"), "\"a\": model_platform is not set"},
  };
  for (const auto& [text, error] : kCases) EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
}

}  // namespace
}  // namespace colcast::models
