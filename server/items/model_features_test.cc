#include "server/items/model_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/items/testing.h"
#include "server/wire/feature_json.h"

namespace colcast::items {
namespace {

using testing::HasSubstr;

// An export record with the features of a test table, each declared as in the table.
std::string RecordOf(std::string features) {
  rapidjson::Document list;
  list.Parse(features.data(), features.size());
  std::string json = R"({"signatures":{"columnar":{"features":{)";
  size_t at = 0;
  for (size_t i = 0; i < list.Size(); ++i) {
    const size_t name = features.find("\"name\":", at);
    const size_t end = features.find('}', name);
    json += (i == 0 ? "" : ",");
    json += "\"" + std::string(list[static_cast<unsigned>(i)]["name"].GetString()) +
            "\":{\"side\":\"item\"," + features.substr(name, end - name) + "}";
    at = end;
  }
  return json + "}}}}";
}

Status Check(const std::string& record, const TestFile& file) {
  std::shared_ptr<const TableFile> read;
  EXPECT_TRUE(ReadTestFile(file.Bytes(), &read).ok());
  rapidjson::Document json;
  EXPECT_TRUE(ParseJson(record, &json));
  return CheckFeatures(ReadModelFeatures(json), "item", read->features());
}

TEST(ModelFeaturesTest, TakesATableOfTheModelsFeatures) {
  const TestFile file = MakeTestTable({1});
  const Status status = Check(RecordOf(file.metadata.at("features")), file);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST(ModelFeaturesTest, RefusesAnotherDefaultByName) {
  const TestFile file = MakeTestTable({1});
  std::string features = file.metadata.at("features");
  features.replace(features.find("[0.5]"), 5, "[0.6]");
  const Status status = Check(RecordOf(features), file);
  EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message, HasSubstr("\"price\" has a different default"));
}

TEST(ModelFeaturesTest, RefusesFeaturesThatOnlyOneHas) {
  const TestFile file = MakeTestTable({1});
  std::string features = file.metadata.at("features");
  features.replace(features.find("price"), 5, "prize");
  EXPECT_THAT(Check(RecordOf(features), file).message, HasSubstr("has no feature \"prize\""));
  features = file.metadata.at("features");
  features = features.substr(0, features.rfind(",{")) + "]";
  EXPECT_THAT(Check(RecordOf(features), file).message, HasSubstr("has a feature \"words\""));
}

TEST(ModelFeaturesTest, RefusesAModelWithoutTheDomain) {
  EXPECT_THAT(Check("{}", MakeTestTable({1})).message, HasSubstr("no feature of the domain"));
}

}  // namespace
}  // namespace colcast::items
