#include "server/engine/program/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/program/testing.h"
#include "server/engine/rows.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DomainsTest : public ::testing::Test {
 protected:
  absl::Status Plan(const std::string& message) {
    planned_ = std::make_unique<SentPlan>(model_.programs(), message);
    return planned_->status;
  }
  const Batch& batch() const { return planned_->plan->batch; }
  std::vector<int64_t> Rows() const {
    std::vector<int64_t> rows;
    for (const Batch::Domain& domain : batch().domains) rows.push_back(domain.rows);
    return rows;
  }

  const StagedModel model_{{}};
  std::unique_ptr<SentPlan> planned_;
};

TEST_F(DomainsTest, WithoutAnIndexThereIsOneUserAndOneItemPerCandidate) {
  ASSERT_TRUE(
      Plan(MessageOf({{"user", {1}}, {"item", {1, 2}}, {"shop", {5}}, {"candidate", {0}}})).ok());
  EXPECT_EQ(batch().form, Batch::Form::kRows);
  EXPECT_THAT(Rows(), ElementsAre(1, 2, 1));
  ASSERT_TRUE(
      Plan(MessageOf({{"user", {1}}, {"item", {1, 2}}, {"shop", {5, 6}}, {"candidate", {0}}}))
          .ok());
  EXPECT_THAT(Rows(), ElementsAre(1, 2, 2));
}

TEST_F(DomainsTest, AnIndexMapsCandidatesToRowsOfItsDomain) {
  const Columns columns = {
      {"user", {1, 2}}, {"item", {1, 2, 3}}, {"shop", {5}}, {"candidate", {0}}};
  ASSERT_TRUE(Plan(MessageOf(columns, {1, 0, 1})).ok());
  EXPECT_EQ(batch().form, Batch::Form::kIndexed);
  EXPECT_THAT(Rows(), ElementsAre(2, 3, 1));
  EXPECT_THAT(RowsIn(batch().domains[0].index), ElementsAre(1, 0, 1));
  EXPECT_EQ(planned_->plan->expansion.rows, 3);
  EXPECT_THAT(std::string(Plan(MessageOf(columns, {1, 2, 0})).message()),
              HasSubstr("input \"row_to_user\": row 1 is 2, expected 0 to 1"));
  EXPECT_THAT(std::string(Plan(MessageOf(columns, {-1, 0, 0})).message()),
              HasSubstr("row 0 is -1"));
}

TEST_F(DomainsTest, ErrorsNameTheColumnWithAWrongNumberOfRows) {
  EXPECT_THAT(
      std::string(
          Plan(MessageOf(
                   {{"user", {1, 2}}, {"item", {1, 2, 3}}, {"shop", {5, 6}}, {"candidate", {0}}},
                   {1, 0, 1}))
              .message()),
      HasSubstr("\"shop\" has 2 rows"));
}

}  // namespace
}  // namespace colcast::engine
