// The rows that a staged program looks up and computes, and states computed ahead of requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/program/testing.h"
#include "server/states/state_cache.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StagedLookupTest, OnlyMissingRowsAreComputed) {
  const StagedModel model({});
  model.Scores(MessageOf({{"user", {2}}, {"item", {3, 4}}, {"shop", {1}}, {"candidate", {0}}}));
  EXPECT_THAT(model.Scores(MessageOf(
                  {{"user", {2}}, {"item", {4, 9, 3}}, {"shop", {2}}, {"candidate", {0, 0, 0}}})),
              ElementsAre(2024, 2029, 2023));
  EXPECT_EQ(model.Store("item").computed, 3);
  EXPECT_EQ(model.Store("item").found, 2);
  EXPECT_EQ(model.Store("user").found, 1);
  EXPECT_EQ(model.Store("shop").computed, 2);
}

TEST(StagedLookupTest, RowsOfAFurtherDomainThatRepeatAreComputedOnce) {
  const StagedModel model({});
  EXPECT_THAT(
      model.Scores(MessageOf(
          {{"user", {1}}, {"item", {1, 2, 3, 4}}, {"shop", {7, 8, 7, 8}}, {"candidate", {0}}})),
      ElementsAre(7011, 8012, 7013, 8014));
  EXPECT_EQ(model.Store("shop").computed, 2);
}

TEST(StagedLookupTest, ItemsOfSeveralUsersThatRepeatAreComputedOnce) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf(
                  {{"user", {1, 2}}, {"item", {5, 6, 5, 6}}, {"shop", {0}}, {"candidate", {0}}},
                  {0, 0, 1, 1})),
              ElementsAre(15, 16, 25, 26));
  EXPECT_EQ(model.Store("item").computed, 2);
}

TEST(StagedLookupTest, AShopsIndexSaysWhichRowEachCandidateReads) {
  const StagedModel model({});
  const std::string request =
      MessageOf({{"user", {1}}, {"item", {1, 2, 3}}, {"shop", {7, 8}}, {"candidate", {0}}}) +
      Int64Input("row_to_shop", {1, 0, 1});
  EXPECT_THAT(model.Scores(request), ElementsAre(8011, 7012, 8013));
  EXPECT_EQ(model.Store("shop").computed, 2);
  EXPECT_EQ(model.Store("user").computed, 1);
}

TEST(StagedLookupTest, UsersThatNeverRepeatAreNotCached) {
  const StagedModel model({});
  const auto ask = [&](float user) {
    return model.Scores(
        MessageOf({{"user", {user}}, {"item", {1}}, {"shop", {0}}, {"candidate", {0}}}));
  };
  for (int user = 0; user < 100; ++user) EXPECT_THAT(ask(user), ElementsAre(10 * user + 1));
  EXPECT_LT(model.Store("user").states, 50);
}

TEST(StagedPrefetchTest, APrefetchedUserIsCached) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 1);
  EXPECT_EQ(model.Store("item").computed, 0);
  model.Scores(MessageOf({{"user", {2}}, {"item", {3}}, {"shop", {1}}, {"candidate", {0}}}));
  EXPECT_EQ(model.Store("user").computed, 1);
  EXPECT_EQ(model.Store("user").found, 1);
}

TEST(StagedPrefetchTest, APrefetchMayHaveCandidateColumnsWithoutRows) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}, {"item", {}}, {"shop", {}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 1);
}

TEST(StagedPrefetchTest, APrefetchHasOneUser) {
  const StagedModel model({});
  std::vector<float> scores;
  const absl::Status status = model.Run(MessageOf({{"user", {2, 3}}}), &scores);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 2 users; expected 1"));
}

TEST(StagedPrefetchTest, ARequestWithAnUnknownInputIsNoPrefetch) {
  const StagedModel model({});
  std::vector<float> scores;
  const absl::Status status = model.Run(MessageOf({{"user", {2}}, {"other", {1}}}), &scores);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"other\" is not in the signature"));
}

TEST(StagedPrefetchTest, WithoutACacheAPrefetchComputesNothing) {
  StagedModel::Settings settings;
  settings.state_bytes = 0;
  const StagedModel model(settings);
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 0);
}

}  // namespace
}  // namespace colcast::engine
