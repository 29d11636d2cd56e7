#include "server/models/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/inference/testing.h"

namespace colcast::models {
namespace {

using inference::MakeServable;
using testing::HasSubstr;
using Labels = std::map<std::string, int64_t>;

TEST(ResolveLabelTest, ALabelIsAVersion) {
  int64_t version = 0;
  ASSERT_TRUE(ResolveLabel({{"stable", 3}, {"canary", 7}}, "canary", &version).ok());
  EXPECT_EQ(version, 7);
}

TEST(ResolveLabelTest, AnUnknownOneIsNamed) {
  int64_t version = 0;
  const Status status = ResolveLabel({{"stable", 3}}, "canary", &version);
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message, HasSubstr("label: canary"));
}

// Model "m" serves version 3, and nothing else, under the label "stable".
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

TEST_F(CheckLabelsTest, WhichLabelsMayBeAssigned) {
  constexpr StatusCode kOk = StatusCode::kOk, kNo = StatusCode::kFailedPrecondition;
  const struct {
    const char* what;
    const char* model;
    Labels labels;
    StatusCode strict;             // by default
    StatusCode allow_unavailable;  // --allow_version_labels_for_unavailable_models
  } kCases[] = {
      {"none", "m", {}, kOk, kOk},
      {"one that stays", "m", {{"stable", 3}}, kOk, kOk},
      {"a second one of a version that serves", "m", {{"canary", 3}}, kOk, kOk},
      {"a new one of a version that does not", "m", {{"canary", 4}}, kNo, kOk},
      {"one that moves to a version that does not", "m", {{"stable", 4}}, kNo, kNo},
      {"one of a model that is new", "other", {{"stable", 1}}, kNo, kOk},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(Check(one.model, one.labels, false), one.strict) << one.what;
    EXPECT_EQ(Check(one.model, one.labels, true), one.allow_unavailable) << one.what;
  }
}

TEST_F(CheckLabelsTest, TheErrorNamesVersionModelAndLabel) {
  const Status status = CheckLabels({Config("m", {{"canary", 4}})}, present_, false);
  EXPECT_THAT(status.message, HasSubstr("version 4 of model m"));
  EXPECT_THAT(status.message, HasSubstr("\"canary\""));
}

TEST_F(CheckLabelsTest, AMissingLabelIsToldWithTheReason) {
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

}  // namespace
}  // namespace colcast::models
