#include "server/engine/program/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/program/testing.h"
#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The stage of items, whose state is the item's column.
class StageTest : public ::testing::Test {
 protected:
  // Rows with one column.
  Stage::Rows Rows(const std::vector<float>& items) {
    Stage::Rows rows;
    columns_.push_back(&sent_.emplace_back(MessageOf({{"item", items}})).input);
    stage_.Begin(static_cast<int64_t>(items.size()), {&columns_.back(), 1}, &rows);
    return rows;
  }

  std::vector<float> Complete(Stage::Rows* rows) {
    std::vector<Tensor> states;
    const absl::Status status = stage_.Complete(rows, &states);
    EXPECT_TRUE(status.ok()) << status;
    return ElementsOf(states[0]);
  }

  const StagedModel model_{{}};
  states::StateCache memory_{1 << 20};
  Stage stage_{&model_.signature("columnar_item"), "item", {}, &memory_, /*window_rows=*/32};
  std::deque<SentInput> sent_;
  std::deque<const Input*> columns_;
};

TEST_F(StageTest, CachedRowsAreNotComputedAgain) {
  bool gain = false;
  Stage::Rows first = Rows({1, 2, 3});
  ASSERT_TRUE(stage_.LookFor(&first, &gain));
  EXPECT_THAT(Complete(&first), ElementsAre(1, 2, 3));
  Stage::Rows second = Rows({3, 4, 1});
  ASSERT_TRUE(stage_.LookFor(&second, &gain));
  EXPECT_TRUE(gain);
  EXPECT_THAT(Complete(&second), ElementsAre(3, 4, 1));
  EXPECT_EQ(stage_.stats().found, 2);
  EXPECT_EQ(stage_.stats().computed, 4);
}

TEST_F(StageTest, OnlyWantedRowsAreComputed) {
  Stage::Rows rows = Rows({1, 2, 3, 4});
  ASSERT_TRUE(stage_.MakeKeys(&rows));
  rows.wanted = {1, 3};
  EXPECT_THAT(Complete(&rows), ElementsAre(2, 4));
  EXPECT_EQ(stage_.stats().computed, 2);
}

TEST_F(StageTest, RowsWithoutKeysAreNotCached) {
  Stage::Rows rows = Rows({1, 2});
  EXPECT_THAT(Complete(&rows), ElementsAre(1, 2));
  EXPECT_EQ(stage_.stats().computed, 2);
  EXPECT_EQ(stage_.stats().states, 0);
}

TEST_F(StageTest, AThreadKeepsNoMemoryOfALargeRequest) {
  Stage::Rows rows = Rows({1, 2});
  rows.keys.reserve(2);
  Stage::End(&rows);
  EXPECT_GE(rows.keys.capacity(), 2);
  EXPECT_THAT(rows.columns, IsEmpty());
  rows.count = 1 << 20;
  Stage::End(&rows);
  EXPECT_EQ(rows.keys.capacity(), 0) << "many rows";
}

TEST_F(StageTest, RowsWithEqualKeysAreMergedIfEnoughRepeat) {
  Stage::Rows rows = Rows({5, 6, 5, 6});
  ASSERT_TRUE(stage_.MergeRepeated(&rows));
  EXPECT_THAT(rows.wanted, ElementsAre(0, 1));
  EXPECT_THAT(rows.merged, ElementsAre(0, 1, 0, 1));
  Stage::Rows different = Rows({1, 2, 3, 4, 5, 6, 7, 1});
  ASSERT_TRUE(stage_.MergeRepeated(&different));
  EXPECT_THAT(different.wanted, IsEmpty());
  EXPECT_THAT(different.merged, IsEmpty());
}

TEST_F(StageTest, StatesOfDifferentOutputsHaveDifferentKeys) {
  Stage::Rows all = Rows({1});
  Stage::Rows none = Rows({1});
  const std::vector<int> no_outputs;
  none.outputs = &no_outputs;
  ASSERT_TRUE(stage_.MakeKeys(&all));
  ASSERT_TRUE(stage_.MakeKeys(&none));
  EXPECT_FALSE(all.keys[0] == none.keys[0]);
}

TEST_F(StageTest, ThreadsThatNeedTheSameRowShareAState) {
  std::vector<std::thread> threads;
  std::deque<Stage::Rows> rows;
  for (int i = 0; i < 4; ++i) rows.push_back(Rows({1, 2, 3}));
  std::vector<std::vector<float>> states(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    threads.emplace_back([&, i] {
      bool gain = false;
      EXPECT_TRUE(stage_.LookFor(&rows[i], &gain));
      states[i] = Complete(&rows[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& one : states) EXPECT_THAT(one, ElementsAre(1, 2, 3));
  EXPECT_EQ(stage_.stats().states, 3);
}

TEST_F(StageTest, NothingIsLookedUpWithoutACache) {
  Stage stage(&model_.signature("columnar_item"), "item", {}, nullptr, 32);
  Stage::Rows rows = Rows({1});
  bool gain = false;
  EXPECT_TRUE(stage.LookFor(&rows, &gain));
  EXPECT_FALSE(gain);
  EXPECT_EQ(stage.stats().not_looked, 1);
}

// Stages with lists, their lengths, and a column without rows. The states of the second stage are
// as wide as a list.
class StageKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    tensorflow::SignatureDef declared;
    const auto declare = [](const std::string& node, int rank, tensorflow::TensorInfo* info) {
      *info = Info(node, -1, rank);
      info->set_dtype(tensorflow::DT_INT64);
    };
    tensorflow::Output placeholder;
    for (const char* node : {"ids", "lengths", "shared"}) {
      placeholder = tensorflow::ops::Placeholder(scope.WithOpName(node), tensorflow::DT_INT64);
    }
    tensorflow::ops::Identity(scope.WithOpName("out"), placeholder);
    auto& inputs = *declared.mutable_inputs();
    declare("ids", 2, &inputs["ids"]);
    declare("lengths", 1, &inputs["ids/length"]);
    declare("shared", 1, &inputs["shared"]);
    session_ = SessionOf(scope);
    RowRecord record;
    record.lists = {"ids"};
    for (const int rank : {1, 2}) {
      tensorflow::TensorInfo& out = (*declared.mutable_outputs())["out"];
      declare("out", rank, &out);
      signatures_.push_back(*Signature::Create(declared, session_.get(), {}, record));
      stages_.emplace_back(signatures_.back().get(), "item", std::vector<int>(), &memory_,
                           /*window_rows=*/32);
    }
    columns_.assign(3, nullptr);
  }

  // Sends a column's values, `width` per row; 0 means no second dimension.
  void Send(const std::string& name, const std::vector<uint64_t>& values, size_t width = 0) {
    const size_t rows = width > 0 ? values.size() / width : values.size();
    std::string shape = BytesField(2, VarintField(1, rows));
    if (width > 0) shape += BytesField(2, VarintField(1, width));
    SendTensor(name, BytesField(2, shape) + BytesField(10, Varints(values)));
  }

  void SendTensor(const std::string& name, const std::string& values) {
    const std::string proto = VarintField(1, DT_INT64) + values;
    const std::string message = BytesField(2, BytesField(1, name) + BytesField(2, proto));
    columns_[inputs().Find(name)] = &sent_.emplace_back(message).input;
  }

  // The rows' keys. With `padding_counts`, uses the stage whose states are as wide as a list.
  std::vector<states::Key> Keys(int64_t count, bool padding_counts) {
    const Stage& stage = stages_[padding_counts ? 1 : 0];
    stage.Begin(count, columns_, &rows_);
    EXPECT_TRUE(stage.SetReaders({}, &rows_));
    EXPECT_TRUE(stage.MakeKeys(&rows_));
    return rows_.keys;
  }

  const SignatureInputs& inputs() const { return signatures_[0]->inputs(); }

  std::unique_ptr<tensorflow::Session> session_;
  states::StateCache memory_{1 << 20};
  std::deque<std::unique_ptr<Signature>> signatures_;
  std::deque<Stage> stages_;
  std::deque<SentInput> sent_;
  std::vector<const Input*> columns_;
  Stage::Rows rows_;
};

TEST_F(StageKeysTest, SharedColumnsArePartOfEveryKey) {
  Send("ids", {1, 2}, 1);
  const std::vector<states::Key> without = Keys(2, true);
  Send("shared", {7});
  const std::vector<states::Key> with = Keys(2, true);
  EXPECT_FALSE(without[0] == with[0]);
  EXPECT_FALSE(without[1] == with[1]);
  EXPECT_THAT(rows_.columns_in_keys, ::testing::ElementsAre(0, -1, -1));
}

TEST_F(StageKeysTest, KeysIgnorePaddingUnlessStatesAreAsWideAsAList) {
  Send("ids", {1, 5, 1, 6}, 2);
  Send("ids/length", {1, 1});
  const std::vector<states::Key> without = Keys(2, false), with = Keys(2, true);
  EXPECT_TRUE(without[0] == without[1]);
  EXPECT_FALSE(with[0] == with[1]);
}

TEST_F(StageKeysTest, KeysCoverEveryValueIfLengthsDoNotFit) {
  Send("ids", {1, 5, 1, 6}, 2);
  Send("ids/length", {3, 1});
  const std::vector<states::Key> before = Keys(2, false);
  Send("ids", {1, 5, 1, 7}, 2);
  const std::vector<states::Key> after = Keys(2, false);
  EXPECT_TRUE(before[0] == after[0]);
  EXPECT_FALSE(before[1] == after[1]);
}

TEST_F(StageKeysTest, AThreadKeepsNoMemoryOfOneRowWithALongList) {
  constexpr size_t kMuch = kMostKeptBytes / sizeof(int64_t);
  Send("ids", std::vector<uint64_t>(kMuch + 1), kMuch + 1);
  Send("ids/length", {1});
  Send("shared", {7});
  const std::vector<states::Key> keys = Keys(1, true);
  std::vector<Tensor> states;
  const absl::Status status = stages_[1].Complete(&rows_, &states);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(rows_.feeds, IsEmpty());
  Stage::End(&rows_);
  EXPECT_EQ(rows_.keys.capacity(), 0);
}

// Row 0 of an item table: a list padded to a width.
class PaddedRow final : public StoredValues {
 public:
  PaddedRow(const StoredRows* rows, int64_t width) : StoredValues(rows), width_(width) {}
  bool padded() const override { return true; }
  void Copy(Places, void* out) const override {
    std::fill_n(static_cast<int64_t*>(out), width_, 0);
  }
  void Visit(Places, StringVisitor*) const override {}

 private:
  const int64_t width_;
};

TEST_F(StageKeysTest, AStoredRowHasAKeyPerWidthIfStatesAreAsWideAsAList) {
  const std::vector<uint32_t> numbers = {0};
  const StoredRows rows = {1, Span<uint32_t>(numbers)};
  std::vector<states::Key> keys;
  for (const int64_t width : {1, 2}) {
    const PaddedRow stored(&rows, width);
    Column column;
    column.name = "ids";
    column.dtype = DT_INT64;
    column.dims = {1, width};
    column.values.stored = &stored;
    Input input(column);
    ASSERT_TRUE(input.Check().ok());
    columns_[inputs().Find("ids")] = &input;
    keys.push_back(Keys(1, true)[0]);
  }
  EXPECT_FALSE(keys[0] == keys[1]);
}

}  // namespace
}  // namespace colcast::engine
