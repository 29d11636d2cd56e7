#include "server/engine/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

// score = 10 * user + item
class PiecesTest : public ::testing::Test {
 protected:
  // The score of each row, and `rows_` that each run had.
  std::vector<float> RunInPieces(const std::string& message, int64_t rows_per_piece) {
    DecodedRequest request;
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    const auto run = [this](const DecodedRequest& piece, RunResult* result) {
      const absl::Status status = model_.runner().Run(piece, result);
      rows_.push_back(result->expansion.rows);
      return status;
    };
    const auto pieces =
        RequestPieces::Create(model_.runner(), request, rules_, rows_per_piece, run);
    if (pieces == nullptr) return {};
    for (int i = pieces->count() - 1; i >= 0; --i) {
      pieces->Run(i);
      EXPECT_EQ(pieces->rows(i), rows_.back());
    }
    std::unique_ptr<Outputs> outputs;
    status_ = pieces->Join(&outputs);
    return status_.ok() ? FirstOutput(*outputs) : std::vector<float>();
  }

  ScoreModel model_;
  BatchRules rules_;
  std::vector<int64_t> rows_;
  Status status_;
};

TEST_F(PiecesTest, PiecesAreAsEqualAsCanBeAndJoinedInOrder) {
  const std::string request =
      FloatInput("user", {1}, {1}) + FloatInput("item", {5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(RunInPieces(request, 2), ElementsAre(11, 12, 13, 14, 15));
  EXPECT_THAT(rows_, ElementsAre(2, 2, 1));
}

TEST_F(PiecesTest, PiecesAreFilledUpToAllowedSizes) {
  rules_.allowed_batch_sizes = {2, 4};
  const std::string user = FloatInput("user", {1}, {1});
  EXPECT_THAT(RunInPieces(user + FloatInput("item", {5}, {1, 2, 3, 4, 5}), 3),
              ElementsAre(11, 12, 13, 14, 15));
  EXPECT_THAT(rows_, ElementsAre(2, 4));  // the last one runs first
  rows_.clear();
  EXPECT_THAT(RunInPieces(user + FloatInput("item", {7}, {1, 2, 3, 4, 5, 6, 7}), 4),
              ElementsAre(11, 12, 13, 14, 15, 16, 17));
  EXPECT_THAT(rows_, ElementsAre(4, 4));
}

TEST_F(PiecesTest, ColumnsOfAllRowsAreCut) {
  const std::string request =
      FloatInput("user", {3}, {1, 2, 3}) + FloatInput("item", {3}, {1, 2, 3});
  EXPECT_THAT(RunInPieces(request, 1), ElementsAre(11, 22, 33));
}

TEST_F(PiecesTest, WhatIsSmallEnoughOrWrongIsNotCut) {
  const std::string user = FloatInput("user", {1}, {1});
  EXPECT_THAT(RunInPieces(user + FloatInput("item", {2}, {1, 2}), 2), ElementsAre());
  EXPECT_THAT(RunInPieces(FloatInput("user", {2}, {1, 2}) + FloatInput("item", {3}, {1, 2, 3}), 1),
              ElementsAre());
  EXPECT_THAT(rows_, ElementsAre());
}

TEST_F(PiecesTest, OutputsWithOtherRowsAreThoseOfTheWholeRequest) {
  model_.Declare({"item"}, {"total"});
  EXPECT_THAT(RunInPieces(FloatInput("item", {4}, {1, 2, 3, 4}), 2), ElementsAre(10));
  EXPECT_THAT(rows_, ElementsAre(2, 2, 4));
}

}  // namespace
}  // namespace colcast::engine
