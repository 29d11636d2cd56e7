#include "server/engine/program/rows_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/program/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// half = x / 2, whose rows are independent. With a query, which has one row: sum = half + query.
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
    session_ = SessionOf(scope);
    tensorflow::SignatureDef& declared = declared_["text"];
    (*declared.mutable_inputs())["x"] = Info("x");
    if (with_query) (*declared.mutable_inputs())["query"] = Info("query", 1);
    (*declared.mutable_outputs())["out"] = Info(with_query ? "sum" : "half", -1, output_dims);
    RowRecord record;
    record.recorded = record.independent = record.any_rounding = true;
    signatures_["text"] = *Signature::Create(declared, session_.get(), {}, record);
    if (item_bytes > 0) memories_.item = std::make_unique<states::StateCache>(item_bytes);
    programs_ = MakePrograms(signatures_, declared_, {}, memories_, {});
  }

  absl::Status Run(const Columns& columns) {
    DecodedRequest request;
    const std::string message = MessageOf(columns);
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    RunResult result;
    absl::Status status = RunRequest(*programs_.at("text"), request, &result);
    scores_.clear();
    if (!status.ok()) return status;
    const auto values = result.tensors[0].flat<float>();
    scores_.assign(values.data(), values.data() + values.size());
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

TEST_F(RowsProgramTest, WithoutMemoryTheSignatureRunsWhole) {
  Make(/*with_query=*/false, 0);
  ASSERT_TRUE(Run({{"x", {2, 4}}}).ok());
  EXPECT_THAT(scores_, ElementsAre(1, 2));
  EXPECT_EQ(Ran(), "whole ok 1;");
}

TEST_F(RowsProgramTest, RowsBesideAQueryAreNotCached) {
  Make(/*with_query=*/true, 1 << 20);
  ASSERT_TRUE(Run({{"x", {2, 4}}, {"query", {10}}}).ok());
  EXPECT_THAT(scores_, ElementsAre(11, 12));
  EXPECT_EQ(Store().states, 0);
  EXPECT_EQ(Ran(), "whole ok 1;");
}

TEST_F(RowsProgramTest, OutputsOfAnyShapeAreNotCached) {
  Make(/*with_query=*/false, 1 << 20, /*output_dims=*/2);
  ASSERT_TRUE(Run({{"x", {2}}}).ok());
  EXPECT_EQ(Ran(), "whole ok 1;");
}

TEST_F(RowsProgramTest, ARequestWithoutRowsRunsWhole) {
  Make(/*with_query=*/false, 1 << 20);
  ASSERT_TRUE(Run({{"x", {}}}).ok());
  EXPECT_EQ(Ran(), "whole ok 1;");
}

TEST_F(RowsProgramTest, ErrorsAreTheWholeSignatures) {
  Make(/*with_query=*/false, 1 << 20);
  const absl::Status status = Run({{"x", {std::numeric_limits<float>::quiet_NaN()}}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("no number"));
  EXPECT_EQ(Ran(), "rows failed 1;whole failed 1;");
}

}  // namespace
}  // namespace colcast::engine
