#include "server/engine/batch/stacked_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "server/engine/rows.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

// score = 10 * user + item
class StackedBatchTest : public ::testing::Test {
 protected:
  void SetUp() override { model_.DeclareUsers(); }

  absl::Status Stack(const std::vector<std::string>& messages, int64_t added_rows = 0) {
    for (const std::string& message : messages) {
      const SentPlan& request = requests_.emplace_back(model_.programs(), message);
      EXPECT_TRUE(request.status.ok()) << request.status;
      members_.push_back(&request.plan->batch);
    }
    return stacked_.Stack(model_.programs(), members_, added_rows);
  }

  absl::Span<const int64_t> RowToUser() const {
    return RowsIn(stacked_.batch().domains[Batch::kUser].index);
  }

  std::vector<float> Scores() {
    RunResult result;
    EXPECT_TRUE(model_.programs().Run(stacked_.batch(), &result).ok());
    return ElementsOf(result.tensors[0]);
  }

  ScoreModel model_;
  std::deque<SentPlan> requests_;
  std::vector<const Batch*> members_;
  StackedBatch stacked_;
};

std::string Request(float user, const std::vector<float>& items) {
  return FloatInput("user", {1}, {user}) + FloatInput("item", {items.size()}, items);
}

std::string SeveralUsers(const std::vector<float>& users, const std::vector<float>& items,
                         const std::vector<int64_t>& row_to_user) {
  return FloatInput("user", {users.size()}, users) + FloatInput("item", {items.size()}, items) +
         Int64Input("row_to_user", row_to_user);
}

TEST_F(StackedBatchTest, IndicesAreShiftedToTheStackedRows) {
  ASSERT_TRUE(Stack({Request(9, {5}), SeveralUsers({1, 2}, {1, 2, 3}, {1, 0, 1}),
                     SeveralUsers({3, 4, 5}, {7, 8}, {2, 2}), Request(6, {0})})
                  .ok());
  EXPECT_EQ(stacked_.batch().candidates, 7);
  EXPECT_EQ(stacked_.batch().domains[Batch::kUser].rows, 7);
  EXPECT_THAT(RowToUser(), ElementsAre(0, 2, 1, 2, 5, 5, 6));
  EXPECT_THAT(Scores(), ElementsAre(95, 21, 12, 23, 57, 58, 60));
}

TEST_F(StackedBatchTest, AddedRowsRepeatTheLastRequestsFirstCandidate) {
  ASSERT_TRUE(Stack({Request(1, {1}), SeveralUsers({2, 3}, {4, 5}, {1, 0})}, 2).ok());
  EXPECT_THAT(RowToUser(), ElementsAre(0, 2, 1, 2, 2));
  EXPECT_THAT(Scores(), ElementsAre(11, 34, 25, 34, 34));
}

TEST_F(StackedBatchTest, WithoutDomainsAllColumnsAreStackedByCandidate) {
  model_.Declare({"user", "item"}, {"score"});
  ASSERT_TRUE(Stack({Request(1, {1, 2}), Request(2, {3})}, 1).ok());
  EXPECT_TRUE(stacked_.batch().domains.empty());
  EXPECT_EQ(stacked_.batch().columns[1]->dims()[0], 4);
  EXPECT_THAT(Scores(), ElementsAre(11, 12, 23, 23));
}

// The views of a column's strings; none if they cannot be read as that many rows.
std::vector<std::string_view> Views(std::vector<int64_t> dims,
                                    const std::vector<std::string_view>& values, int64_t rows) {
  Column column;
  column.dtype = DT_STRING;
  column.dims = std::move(dims);
  for (const std::string_view value : values) column.values.AddString(value);
  Input wire(column);
  EXPECT_TRUE(wire.Check().ok());
  std::vector<Bytes> strings;
  std::vector<std::string_view> views;
  if (!AddStrings(wire, rows, &strings)) return views;
  for (const Bytes& string : strings) views.push_back(string.view());
  return views;
}

TEST(ExampleStringsTest, ExampleStringsAreNotCopied) {
  const std::string text = "an Example";
  const std::vector<std::string_view> views = Views({2}, {text, "b"}, 2);
  EXPECT_THAT(views, ElementsAre(text, "b"));
  EXPECT_EQ(views[0].data(), text.data());
}

TEST(ExampleStringsTest, OneExampleAndTheLastOfAShortListAreRepeated) {
  EXPECT_THAT(Views({1}, {"a"}, 3), ElementsAre("a", "a", "a"));
  EXPECT_THAT(Views({3}, {"a", "b"}, 3), ElementsAre("a", "b", "b"));
  EXPECT_THAT(Views({2}, {}, 2), ElementsAre("", ""));
}

TEST(ExampleStringsTest, OtherShapesAreNotExamples) {
  EXPECT_THAT(Views({2, 1}, {"a", "b"}, 2), ElementsAre());
  EXPECT_THAT(Views({2}, {"a", "b"}, 3), ElementsAre());
}

}  // namespace
}  // namespace colcast::engine
