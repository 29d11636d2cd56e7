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
using Labels = std::map<std::string, int64_t>;

// Model "m" serves only version 3, with the label "stable".
class CheckLabelsTest : public testing::Test {
 protected:
  CheckLabelsTest() {
    ModelState& state = present_.try_emplace("m", Config("m", {{"stable", 3}})).first->second;
    state.SetAspiredVersions({{3, "/m/3"}});
    state.StartLoading("/m/3");
    state.Loaded("/m/3", MakeServable(3));
  }
  static ModelConfig Config(const std::string& name, Labels labels) {
    return ModelConfig{name, "/" + name, {}, std::move(labels), {}};
  }
  StatusCode Check(const std::string& name, const Labels& labels, bool allow_unavailable) {
    return CheckLabels({Config(name, labels)}, present_, allow_unavailable).code;
  }

  std::map<std::string, ModelState> present_;
};

TEST_F(CheckLabelsTest, LabelsAreCheckedAgainstServingVersions) {
  constexpr StatusCode kOk = StatusCode::kOk, kNo = StatusCode::kFailedPrecondition;
  const struct {
    const char* what;
    const char* model;
    Labels labels;
    StatusCode strict;             // by default
    StatusCode allow_unavailable;  // with --allow_version_labels_for_unavailable_models
  } kCases[] = {
      {"no label", "m", {}, kOk, kOk},
      {"unchanged", "m", {{"stable", 3}}, kOk, kOk},
      {"a second label of a serving version", "m", {{"canary", 3}}, kOk, kOk},
      {"a new label of a version that does not serve", "m", {{"canary", 4}}, kNo, kOk},
      {"moved to a version that does not serve", "m", {{"stable", 4}}, kNo, kNo},
      {"a label of a new model", "other", {{"stable", 1}}, kNo, kOk},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(Check(one.model, one.labels, false), one.strict) << one.what;
    EXPECT_EQ(Check(one.model, one.labels, true), one.allow_unavailable) << one.what;
  }
}

TEST_F(CheckLabelsTest, MissingLabelsAreReportedWithTheReason) {
  ModelState& state = present_.at("m");
  state.SetConfig(Config("m", {{"stable", 3}, {"canary", 4}}));
  EXPECT_TRUE(MissingLabels({}, present_).empty());
  EXPECT_TRUE(MissingLabels({{"m", "stable"}}, present_).empty());
  EXPECT_THAT(
      MissingLabels({{"m", "stable"}, {"m", "canary"}, {"m", "next"}, {"n", "stable"}}, present_),
      testing::ElementsAre(HasSubstr("\"canary\" (--ready_labels): version 4 does not serve"),
                           HasSubstr("has no such label"), HasSubstr("model \"n\" label")));
  state.SetAspiredVersions({{3, "/m/3"}, {4, "/m/4"}});
  state.StartLoading("/m/4");
  EXPECT_EQ(MissingLabels({{"m", "canary"}}, present_).size(), 1);
  state.Loaded("/m/4", MakeServable(4));
  EXPECT_TRUE(MissingLabels({{"m", "canary"}}, present_).empty());
  state.Leave();
  EXPECT_EQ(MissingLabels({{"m", "canary"}}, present_).size(), 1);
}

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

TEST_F(ServingTableTest, FindsTheHighestVersionAndVersionsByNumberAndLabel) {
  EXPECT_EQ(Version(Spec("m")), 7);
  EXPECT_EQ(Version(Spec("m", 3)), 3);
  EXPECT_EQ(Version(Label("m", "stable")), 3);
}

TEST_F(ServingTableTest, ErrorsSayWhatIsMissing) {
  EXPECT_EQ(ErrorOf(Spec("")).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Spec("other")).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("other")).message,
              HasSubstr("Latest(other): this server serves \"m\", \"starting\", \"waiting\""));
  EXPECT_EQ(ErrorOf(Spec("waiting")).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("waiting")).message, HasSubstr("no version loaded"));
  EXPECT_EQ(ErrorOf(Spec("m", 4)).code, StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(Spec("m", 4)).message, HasSubstr("Specific(m, 4): versions 3, 7 serve"));
  EXPECT_THAT(ErrorOf(Spec("waiting", 4)).message,
              HasSubstr("Specific(waiting, 4): no version serves"));
  EXPECT_EQ(ErrorOf(Label("m", "canary")).code, StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(Label("m", "canary")).message, HasSubstr("label: canary"));
  EXPECT_EQ(ErrorOf(Label("m", "gone")).code, StatusCode::kNotFound);
}

TEST_F(ServingTableTest, AModelThatIsStillLoadingIsUnavailable) {
  for (const ModelSpec& spec :
       {Spec("starting"), Spec("starting", 3), Label("starting", "stable")}) {
    EXPECT_EQ(ErrorOf(spec).code, StatusCode::kUnavailable);
    EXPECT_THAT(ErrorOf(spec).message, HasSubstr("model starting is being loaded"));
  }
  EXPECT_EQ(ErrorOf(Label("starting", "canary")).code, StatusCode::kInvalidArgument);
}

TEST_F(ServingTableTest, MissingModelsAreUnavailableUntilTheFirstModelsHaveLoaded) {
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
