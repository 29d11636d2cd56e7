#include "server/models/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

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

TEST(ModelConfigTest, OneVersionIsServedUnlessSaidOtherwise) {
  const std::vector<ModelConfig> models = Parse(OneModel(kRanker));
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "ranker");
  EXPECT_EQ(models[0].base_path, "/m");
  EXPECT_EQ(models[0].policy.kind, VersionPolicy::Kind::kLatest);
  EXPECT_EQ(models[0].policy.num_versions, 1u);
  EXPECT_THAT(models[0].labels, IsEmpty());
}

TEST(ModelConfigTest, ReadsPoliciesAndLabels) {
  const std::string latest = OneModel(kRanker + std::string("model_version_policy { latest { "
                                                            "num_versions: 3 } }"));
  EXPECT_EQ(Parse(latest)[0].policy.num_versions, 3u);
  const std::string all = OneModel(kRanker + std::string("model_version_policy { all {} }"));
  EXPECT_EQ(Parse(all)[0].policy.kind, VersionPolicy::Kind::kAll);
  const ModelConfig specific = Parse(OneModel(
      kRanker +
      std::string("model_version_policy { specific { versions: 7 versions: 2 versions: 7 } }"
                  "version_labels { key: 'stable' value: 2 }"
                  "version_labels { key: 'canary' value: 7 }")))[0];
  EXPECT_THAT(specific.policy.versions, ElementsAre(2, 7));
  EXPECT_THAT(specific.labels, ElementsAre(Pair("canary", 7), Pair("stable", 2)));
}

TEST(ModelConfigTest, AnEmptyListIsAConfiguration) {
  EXPECT_THAT(Parse("model_config_list {}"), IsEmpty());
}

TEST(ModelConfigTest, TheDeprecatedModelTypeStillMeansTensorFlow) {
  EXPECT_EQ(Parse(OneModel("name: 'a' base_path: '/a' model_type: TENSORFLOW")).size(), 1u);
}

TEST(ModelConfigTest, TextThatDoesNotParseIsNamedByLineAndColumn) {
  EXPECT_THAT(ErrorOf("model_config_list {\n  config { name 'a' }\n}"),
              StartsWith("models.config:2:17: Error parsing text-format "
                         "tensorflow.serving.ModelServerConfig: "));
  EXPECT_THAT(ErrorOf("model_config_list {\n config {\n  nome: 'a'\n } }"),
              AllOf(StartsWith("models.config:3:"), HasSubstr("nome")));
  EXPECT_THAT(ErrorOf("model_config_list {"), StartsWith("models.config:1:"));
}

TEST(ModelConfigTest, TheErrorSaysThatAFileIsBinary) {
  EXPECT_THAT(ErrorOf(std::string("\x7f"
                                  "ELF\0",
                                  5)),
              StartsWith("models.config is binary, expected"));
}

TEST(ModelConfigTest, WrongModelsAreRefusedByName) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no model_config_list"));
  EXPECT_THAT(ErrorOf(OneModel("base_path: '/m' model_platform: 'tensorflow'")),
              HasSubstr("base_path \"/m\" has no name"));
  EXPECT_THAT(ErrorOf("model_config_list { config {" + std::string(kRanker) + "} config {" +
                      kRanker + "} }"),
              HasSubstr("Illegal to list model ranker multiple times"));
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: 'm' model_platform: 'tensorflow'")),
              HasSubstr("Expected model a to have an absolute path; got base_path \"m\""));
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: 's3://m' model_platform: 'tensorflow'")),
              HasSubstr("\"a\": base_path s3://m is not on a local file system"));
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: '/m\\0n' model_platform: 'tensorflow'")),
              HasSubstr("\"a\": base_path /m is followed by a NUL byte"));
}

TEST(ModelConfigTest, OtherPlatformsAreRefusedByName) {
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: '/m' model_platform: 'caffe'")),
              HasSubstr("\"a\": platform \"caffe\""));
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: '/m'")),
              HasSubstr("\"a\": model_platform is not set"));
  EXPECT_THAT(ErrorOf(OneModel("name: 'a' base_path: '/m' model_type: OTHER")),
              HasSubstr("\"a\": model_type 2"));
  EXPECT_THAT(ErrorOf(OneModel(kRanker + std::string("model_type: TENSORFLOW"))),
              HasSubstr("both"));
}

}  // namespace
}  // namespace colcast::models
