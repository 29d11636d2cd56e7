#include "server/engine/program/whole_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/program/testing.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

// score = user + item, and score_exact, whose inputs have the names that the exporter gives them.
class ExactProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    for (const std::string prefix : {"", "score_exact/inputs/", "elsewhere/"}) {
      const auto user = ops::Placeholder(scope.WithOpName(prefix + "user"), tensorflow::DT_FLOAT);
      const auto item = ops::Placeholder(scope.WithOpName(prefix + "item"), tensorflow::DT_FLOAT);
      ops::Add(scope.WithOpName(prefix + "score"), user, item);
    }
    session_ = SessionOf(scope);
    whole_ = Declare("", -1);
  }

  std::unique_ptr<Signature> Declare(const std::string& prefix, int64_t user_rows) {
    tensorflow::SignatureDef declared;
    (*declared.mutable_inputs())["user"] = Info(prefix + "user", user_rows);
    (*declared.mutable_inputs())["item"] = Info(prefix + "item");
    (*declared.mutable_outputs())["score"] = Info(prefix + "score");
    return *Signature::Create(declared, session_.get(), {});
  }

  // Whether a request fits the exact signature of `whole_`.
  bool Fits(const std::string& message) {
    const auto exact = Declare("score_exact/inputs/", 1);
    const auto program = ExactProgram::Create(*whole_, "score_exact", *exact);
    EXPECT_NE(program, nullptr);
    const SentRequest sent(message);
    ReceivedRequest received;
    EXPECT_TRUE(whole_->Receive(sent.request, &received).ok());
    return program->Plan(&received);
  }

  std::unique_ptr<tensorflow::Session> session_;
  std::unique_ptr<Signature> whole_;
};

TEST_F(ExactProgramTest, TheExactProgramNeedsItsOwnInputsAndAOneRowInput) {
  const auto create = [&](const std::string& prefix, int64_t user_rows) {
    return ExactProgram::Create(*whole_, "score_exact", *Declare(prefix, user_rows));
  };
  EXPECT_NE(create("score_exact/inputs/", 1), nullptr);
  EXPECT_EQ(create("score_exact/inputs/", -1), nullptr);  // no input takes one row
  EXPECT_EQ(create("elsewhere/", 1), nullptr);            // another signature's inputs
  EXPECT_EQ(create("score_exact/inputs/", 2), nullptr);
}

TEST_F(ExactProgramTest, OnlyRequestsThatSendTheUserOnceFit) {
  const std::string items = FloatInput("item", {2}, {1, 2});
  EXPECT_TRUE(Fits(FloatInput("user", {1}, {1}) + items));
  EXPECT_FALSE(Fits(FloatInput("user", {2}, {1, 1}) + items));
  // With one candidate there is nothing to gain.
  EXPECT_FALSE(Fits(FloatInput("user", {1}, {1}) + FloatInput("item", {1}, {1})));
  EXPECT_FALSE(Fits(FloatInput("other", {1}, {1}) + items));
}

using ::testing::HasSubstr;

// half = x / 2, whose rows are independent; with a query, which has one row, sum = half + query.
class RowsProgramTest : public ::testing::Test {
 protected:
  void Make(bool with_query, int64_t item_bytes, int output_dims = 1) {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto x = ops::Placeholder(scope.WithOpName("x"), tensorflow::DT_FLOAT);
    const auto query = ops::Placeholder(scope.WithOpName("query"), tensorflow::DT_FLOAT);
    const auto half = ops::CheckNumerics(scope, ops::Multiply(scope, x, 0.5f), "no number");
    ops::Identity(scope.WithOpName("half"), half);
    ops::Add(scope.WithOpName("sum"), half, query);
    programs_.clear();
    signatures_.clear();
    session_ = SessionOf(scope);
    tensorflow::SignatureDef& declared = declared_["text"];
    declared.Clear();
    (*declared.mutable_inputs())["x"] = Info("x");
    if (with_query) (*declared.mutable_inputs())["query"] = Info("query", 1);
    (*declared.mutable_outputs())["out"] = Info(with_query ? "sum" : "half", -1, output_dims);
    RowRecord record;
    record.recorded = record.independent = record.any_rounding = true;
    signatures_["text"] = *Signature::Create(declared, session_.get(), {}, record);
    memories_.item = item_bytes > 0 ? std::make_unique<states::StateCache>(item_bytes) : nullptr;
    programs_ = MakePrograms(signatures_, declared_, {}, memories_, {});
  }

  absl::Status Run(const Columns& columns) {
    RunResult result;
    absl::Status status = RunRequest(*programs_.at("text"), MessageOf(columns), &result);
    scores_ = status.ok() ? ElementsOf(result.tensors[0]) : std::vector<float>();
    return status;
  }

  states::StoreStats Store() { return programs_.at("text")->stores()[0].counted; }

  std::string Ran() {
    std::string ran;
    for (const ProgramStats& stats : programs_.at("text")->counts()) {
      absl::StrAppend(&ran, stats.program, " ", stats.outcome, " ", stats.count, ";");
    }
    return ran;
  }

  std::vector<float> scores_;

 private:
  std::unique_ptr<tensorflow::Session> session_;
  SignatureMap declared_;
  SignaturesByName signatures_;
  StateCaches memories_;
  ProgramsByName programs_;
};

TEST_F(RowsProgramTest, OnlyUncachedRowsAreComputed) {
  Make(/*with_query=*/false, 1 << 20);
  ASSERT_TRUE(Run({{"x", {2, 4}}}).ok());
  ASSERT_TRUE(Run({{"x", {4, 6, 2}}}).ok());
  EXPECT_THAT(scores_, ElementsAre(2, 3, 1));
  EXPECT_EQ(Store().store, "item");
  EXPECT_EQ(Store().computed, 3);
  EXPECT_EQ(Store().found, 2);
  EXPECT_EQ(Ran(), "rows ok 2;");
}

TEST_F(RowsProgramTest, TheSignatureRunsWholeIfNothingCanBeCached) {
  const struct {
    bool with_query;
    int64_t item_bytes;
    int output_dims;
    Columns columns;
    std::vector<float> scores;
  } kCases[] = {
      {false, 0, 1, {{"x", {2, 4}}}, {1, 2}},  // no cache
      {true, 1 << 20, 1, {{"x", {2, 4}}, {"query", {10}}}, {11, 12}},
      {false, 1 << 20, 2, {{"x", {2}}}, {1}},  // outputs of any shape
      {false, 1 << 20, 1, {{"x", {}}}, {}},
  };
  for (const auto& one : kCases) {
    Make(one.with_query, one.item_bytes, one.output_dims);
    ASSERT_TRUE(Run(one.columns).ok());
    EXPECT_EQ(scores_, one.scores);
    EXPECT_EQ(Store().states, 0);
    EXPECT_EQ(Ran(), "whole ok 1;");
  }
}

TEST_F(RowsProgramTest, ErrorsComeFromTheWholeSignature) {
  Make(/*with_query=*/false, 1 << 20);
  const absl::Status status = Run({{"x", {std::numeric_limits<float>::quiet_NaN()}}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("no number"));
  EXPECT_EQ(Ran(), "rows failed 1;whole failed 1;");
}

}  // namespace
}  // namespace colcast::engine
