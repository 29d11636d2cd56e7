#include "server/engine/program/gathered_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/engine/program/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TwoUsers(const std::vector<int64_t>& row_to_user) {
  const size_t rows = row_to_user.size();
  return MessageOf({{"user", {2, 5}},
                    {"item", std::vector<float>(rows, 1)},
                    {"shop", {0}},
                    {"candidate", std::vector<float>(rows, 0)}},
                   row_to_user);
}

class GatheredProgramTest : public ::testing::Test {
 protected:
  std::string Error(const std::string& message) {
    std::vector<float> scores;
    const absl::Status status = model_.Run(message, &scores);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  const StagedModel model_{{}};
};

TEST_F(GatheredProgramTest, EachCandidateReadsItsUsersRow) {
  EXPECT_THAT(model_.Scores(TwoUsers({1, 0, 1})), ElementsAre(51, 21, 51));
  EXPECT_THAT(model_.Ran(), ElementsAre("stages ok 1"));
}

TEST_F(GatheredProgramTest, ColumnarGathersRowsAndRunsOnce) {
  EXPECT_THAT(model_.Scores(TwoUsers({1, 0, 1}), "columnar"), ElementsAre(51, 21, 51));
  EXPECT_THAT(model_.Ran("columnar"), ElementsAre("gathered ok 1"));
}

TEST_F(GatheredProgramTest, WhereAStageFailsRowsAreGathered) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores = model_.Scores(MessageOf(
      {{"user", {nan, 5}}, {"item", {1, 2}}, {"shop", {0}}, {"candidate", {0, 0}}}, {1, 0}));
  EXPECT_EQ(scores[0], 51);
  EXPECT_TRUE(std::isnan(scores[1]));
  EXPECT_THAT(model_.Ran(), ElementsAre("stages failed 1", "gathered ok 1"));
}

TEST_F(GatheredProgramTest, AnIndexNamesARowThatIsThere) {
  EXPECT_THAT(Error(TwoUsers({0, 2})),
              HasSubstr("input \"row_to_user\": row 1 is 2, expected 0 to 1"));
  EXPECT_THAT(Error(TwoUsers({-1, 0})), HasSubstr("row 0 is -1"));
}

TEST_F(GatheredProgramTest, CandidatesHaveAsManyRowsAsTheirIndex) {
  EXPECT_THAT(
      Error(MessageOf({{"user", {2, 5}}, {"item", {1, 2}}, {"shop", {0}}, {"candidate", {0, 0}}},
                      {0, 1, 0})),
      HasSubstr("row_to_user"));
}

TEST_F(GatheredProgramTest, ARequestMayHaveIndicesOfSeveralDomains) {
  const std::string message =
      MessageOf({{"user", {2, 5}}, {"item", {1, 2, 3}}, {"shop", {7, 8}}, {"candidate", {0}}},
                {1, 0, 1}) +
      Int64Input("row_to_shop", {0, 1, 1});
  EXPECT_THAT(model_.Scores(message), ElementsAre(7051, 8022, 8053));
  EXPECT_THAT(model_.Scores(message, "columnar"), ElementsAre(7051, 8022, 8053));
}

TEST_F(GatheredProgramTest, AnIndexOfADomainWithoutColumnsIsUnknown) {
  std::vector<float> scores;
  const std::string message =
      MessageOf({{"user", {2}}, {"item", {1}}, {"shop", {0}}, {"candidate", {0}}}) +
      Int64Input("row_to_item", {0});
  EXPECT_THAT(Error(message), HasSubstr("\"row_to_item\" is not in the signature"));
}

TEST_F(GatheredProgramTest, GatheredRowsStayWithinTheLimit) {
  ScoreModel model;
  Options options;
  options.max_expanded_bytes = 100;
  model.DeclareUsers(options);
  DecodedRequest request;
  const std::string message = MessageOf({{"user", {1, 2}}, {"item", std::vector<float>(100, 1)}},
                                        std::vector<int64_t>(100, 0));
  ASSERT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
  RunResult result;
  EXPECT_EQ(RunRequest(model.programs(), request, &result).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace colcast::engine
