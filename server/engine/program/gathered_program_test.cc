#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/batch/testing.h"
#include "server/engine/program/testing.h"
#include "server/engine/program/whole_program.h"
#include "server/engine/signature.h"

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

TEST_F(GatheredProgramTest, ColumnarGathersRowsAndRunsOnce) {
  EXPECT_THAT(model_.Scores(TwoUsers({1, 0, 1}), "columnar"), ElementsAre(51, 21, 51));
  EXPECT_THAT(model_.Ran("columnar"), ElementsAre("gathered ok 1"));
}

TEST_F(GatheredProgramTest, RowsAreGatheredIfAStageFails) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores = model_.Scores(MessageOf(
      {{"user", {nan, 5}}, {"item", {1, 2}}, {"shop", {0}}, {"candidate", {0, 0}}}, {1, 0}));
  EXPECT_EQ(scores[0], 51);
  EXPECT_TRUE(std::isnan(scores[1]));
  EXPECT_THAT(model_.Ran(), ElementsAre("stages failed 1", "gathered ok 1"));
}

TEST_F(GatheredProgramTest, AnIndexLongerThanTheCandidateColumnsIsRefused) {
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

TEST_F(GatheredProgramTest, AnIndexOfADomainWithoutColumnsIsRefused) {
  const std::string message =
      MessageOf({{"user", {2}}, {"item", {1}}, {"shop", {0}}, {"candidate", {0}}}) +
      Int64Input("row_to_item", {0});
  EXPECT_THAT(Error(message), HasSubstr("\"row_to_item\" is not in the signature"));
}

// score = 10 * user + item + 1000 * the sum of `weight`, by default an input without rows.
class WeightedModel final : public ExportedModel {
 public:
  explicit WeightedModel(const std::string& weight_name = "weight", int64_t weight_rows = 1) {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto input = [&](const std::string& name) {
      return ops::Placeholder(scope.WithOpName(name), tensorflow::DT_FLOAT);
    };
    const auto user = ops::Multiply(scope, input("user"), 10.0f);
    const auto weight = ops::Multiply(scope, ops::Sum(scope, input(weight_name), 0), 1000.0f);
    ops::Add(scope.WithOpName("score"), ops::Add(scope, user, input("item")), weight);
    SetGraph(scope);
    RecordedSignatures recorded;
    for (const std::string name : {"columnar", "columnar_late"}) {
      tensorflow::SignatureDef& signature = declared_[name];
      (*signature.mutable_inputs())["user"] = Info("user", name == "columnar" ? -1 : 1);
      (*signature.mutable_inputs())["item"] = Info("item");
      (*signature.mutable_inputs())[weight_name] = Info(weight_name, weight_rows);
      (*signature.mutable_outputs())["score"] = Info("score");
      recorded.rows[name].independent = true;
    }
    Make(recorded, /*state_bytes=*/0);
  }
};

// Runs the requests together where allowed, and returns each one's scores.
std::vector<std::vector<float>> RunAll(const Programs& programs,
                                       const std::vector<std::string>& messages) {
  BatchRules rules;
  rules.any_signature = true;
  std::deque<SentPlan> requests;
  for (const std::string& message : messages) requests.emplace_back(programs, message, &rules);
  std::vector<BatchMember> members;
  RunTogether(programs, requests, &members);
  std::vector<std::vector<float>> scores;
  for (const BatchMember& member : members) {
    EXPECT_TRUE(member.status.ok()) << member.status.message;
    scores.push_back(FirstOutput(*member.outputs));
  }
  return scores;
}

TEST(GatheredProgramInputsTest, AnInputWithoutRowsIsFedAsSent) {
  const WeightedModel model;
  for (const char* const name : {"columnar", "columnar_late"}) {
    EXPECT_THAT(
        RunAll(model.programs(name),
               {MessageOf({{"user", {2, 5}}, {"item", {1, 2, 3}}, {"weight", {3}}}, {1, 0, 1})}),
        ElementsAre(ElementsAre(3051, 3022, 3053)))
        << name;
  }
}

TEST(GatheredProgramInputsTest, EachRequestIsScoredWithItsOwnInputWithoutRows) {
  const WeightedModel model;
  for (const char* const name : {"columnar", "columnar_late"}) {
    EXPECT_THAT(RunAll(model.programs(name),
                       {MessageOf({{"user", {2}}, {"item", {1, 2}}, {"weight", {3}}}),
                        MessageOf({{"user", {5}}, {"item", {1, 2, 3}}, {"weight", {4}}})}),
                ElementsAre(ElementsAre(3021, 3022), ElementsAre(4051, 4052, 4053)))
        << name;
  }
}

TEST(GatheredProgramInputsTest, AFeatureNamedLikeAStateMustHaveCandidateRows) {
  const WeightedModel model("user_state/x", -1);
  const std::string message =
      MessageOf({{"user", {2, 5}}, {"item", {1, 2, 3}}, {"user_state/x", {7, 8}}}, {1, 0, 1});
  for (const char* const name : {"columnar", "columnar_late"}) {
    RunResult result;
    const absl::Status status = RunRequest(model.programs(name), message, &result);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << name << ": " << (status.ok() ? result.tensors[0].SummarizeValue(3) : "");
  }
}

TEST_F(GatheredProgramTest, GatheredRowsBeyondTheLimitAreRefused) {
  ScoreModel model;
  Options options;
  options.max_expanded_bytes = 100;
  model.DeclareUsers(options);
  const std::string message = MessageOf({{"user", {1, 2}}, {"item", std::vector<float>(100, 1)}},
                                        std::vector<int64_t>(100, 0));
  RunResult result;
  EXPECT_EQ(RunRequest(model.programs(), message, &result).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace colcast::engine
