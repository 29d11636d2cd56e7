#include "server/models/serving_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/inference/testing.h"

namespace colcast::models {
namespace {

using inference::MakeServable;
using testing::HasSubstr;

ModelSpec Spec(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  return spec;
}

ModelSpec Spec(const std::string& name, int64_t version) {
  ModelSpec spec = Spec(name);
  spec.version = version;
  return spec;
}

ModelSpec Label(const std::string& name, const std::string& label) {
  ModelSpec spec = Spec(name);
  spec.version_label = label;
  return spec;
}

class ServingTableTest : public testing::Test {
 protected:
  ServingTableTest() {
    ServingModels models;
    models["m"].versions = {{3, MakeServable(3)}, {7, MakeServable(7)}};
    models["m"].labels = {{"stable", 3}, {"gone", 5}};
    models["waiting"];
    models["starting"].loading = true;
    models["starting"].labels = {{"stable", 3}};
    table_.Replace(std::move(models), /*ready=*/true);
  }

  int64_t Version(const ModelSpec& spec) {
    std::shared_ptr<const Servable> servable;
    const Status status = table_.Find(spec, &servable);
    EXPECT_TRUE(status.ok()) << status.message;
    return servable == nullptr ? -1 : servable->version();
  }
  Status ErrorOf(const ModelSpec& spec) {
    std::shared_ptr<const Servable> servable;
    return table_.Find(spec, &servable);
  }

  ServingTable table_;
};

TEST_F(ServingTableTest, FindsTheHighestTheGivenAndTheLabelledVersion) {
  EXPECT_EQ(Version(Spec("m")), 7);
  EXPECT_EQ(Version(Spec("m", 3)), 3);
  EXPECT_EQ(Version(Label("m", "stable")), 3);
}

TEST_F(ServingTableTest, SaysWhatIsNotThere) {
  EXPECT_EQ(ErrorOf(Spec("")).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Spec("other")).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("other")).message,
              HasSubstr("Latest(other): this server serves \"m\", \"starting\", \"waiting\""));
  EXPECT_EQ(ErrorOf(Spec("waiting")).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("waiting")).message, HasSubstr("no version loaded"));
  EXPECT_EQ(ErrorOf(Spec("m", 4)).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("m", 4)).message, HasSubstr("Specific(m, 4): version 3, 7 serve"));
  EXPECT_EQ(ErrorOf(Label("m", "canary")).code, StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(Label("m", "canary")).message, HasSubstr("label: canary"));
  EXPECT_EQ(ErrorOf(Label("m", "gone")).code, StatusCode::kNotFound);
}

TEST_F(ServingTableTest, AModelThatStillLoadsIsUnavailable) {
  for (const ModelSpec& spec :
       {Spec("starting"), Spec("starting", 3), Label("starting", "stable")}) {
    EXPECT_EQ(ErrorOf(spec).code, StatusCode::kUnavailable);
    EXPECT_THAT(ErrorOf(spec).message, HasSubstr("model starting is being loaded"));
  }
  EXPECT_EQ(ErrorOf(Label("starting", "canary")).code, StatusCode::kInvalidArgument);
}

TEST_F(ServingTableTest, NothingIsNotFoundUntilTheFirstModelsHaveLoaded) {
  ServingModels models;
  models["m"].versions = {{3, MakeServable(3)}};
  models["waiting"];
  table_.Replace(std::move(models), /*ready=*/false);
  EXPECT_EQ(Version(Spec("m")), 3);
  for (const ModelSpec& spec : {Spec("other"), Spec("waiting"), Spec("m", 4)}) {
    EXPECT_EQ(ErrorOf(spec).code, StatusCode::kUnavailable);
    EXPECT_THAT(ErrorOf(spec).message, HasSubstr("loading its first models"));
  }
}

}  // namespace
}  // namespace colcast::models
