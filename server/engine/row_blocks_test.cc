#include "server/engine/row_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/input.h"
#include "server/engine/rewrites/testing.h"
#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::tstring;
using testing::ElementsAre;

class RowBlocksTest : public ::testing::Test {
 protected:
  const Input& Add(Column column) {
    Input& added = wire_.emplace_back(columns_.emplace_back(std::move(column)));
    EXPECT_TRUE(added.Check().ok());
    return added;
  }

  // int64 as clients send them: packed varints.
  const Input& Numbers(std::vector<int64_t> dims, const std::vector<uint64_t>& values) {
    Column column;
    column.dtype = DT_INT64;
    column.dims = std::move(dims);
    column.values.packed = true;
    column.values.payload = Bytes(kept_.emplace_back(Varints(values)));
    column.values.count = static_cast<int64_t>(values.size());
    return Add(std::move(column));
  }

  const Input& LaidOut(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    Column column;
    column.dtype = DT_INT64;
    column.dims = std::move(dims);
    column.values.tensor_content = Bytes(kept_.emplace_back(Raw(values)));
    return Add(std::move(column));
  }

  const Input& Strings(std::vector<int64_t> dims, const std::vector<std::string_view>& values) {
    Column column;
    column.dtype = DT_STRING;
    column.dims = std::move(dims);
    for (const std::string_view value : values) column.values.AddString(value);
    return Add(std::move(column));
  }

  Tensor Stack(const std::vector<RowBlock>& blocks, PadWith pad = PadWith::kZeros) {
    Tensor tensor;
    EXPECT_TRUE(StackRows(blocks, pad, &tensor).ok());
    return tensor;
  }

  std::deque<std::string> kept_;
  std::deque<Column> columns_;
  std::deque<Input> wire_;
};

TEST_F(RowBlocksTest, RowsFollowOneAnother) {
  const Tensor stacked = Stack({AllRows(Numbers({2}, {1, 300}), 2), AllRows(Numbers({1}, {7}), 1)});
  EXPECT_EQ(stacked.shape(), tensorflow::TensorShape({3}));
  EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(1, 300, 7));
}

TEST_F(RowBlocksTest, ASingleRowIsRepeated) {
  const Tensor stacked =
      Stack({AllRows(Numbers({1, 2}, {1, 2}), 3), AllRows(Numbers({2, 2}, {3, 4, 5, 6}), 2)});
  EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(1, 2, 1, 2, 1, 2, 3, 4, 5, 6));
}

TEST_F(RowBlocksTest, AListThatRepeatsItsLastValueEndsWithItsBlock) {
  const Tensor stacked = Stack({AllRows(Numbers({3}, {5}), 3), AllRows(Numbers({2}, {6, 7}), 2)});
  EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(5, 5, 5, 6, 7));
}

TEST_F(RowBlocksTest, TheFirstRowOfSeveralIsRepeatedWhereItIsAskedFor) {
  for (const Input* const column : {&Numbers({2}, {8, 9}), &LaidOut({2}, {8, 9})}) {
    const Tensor stacked = Stack({AllRows(*column, 2), {column, 0, 3, true}});
    EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(8, 9, 8, 8, 8));
  }
}

TEST_F(RowBlocksTest, SomeRowsAreTakenOut) {
  const Tensor numbers = Stack({{&LaidOut({3, 2}, {1, 2, 3, 4, 5, 6}), 1, 2}});
  EXPECT_EQ(numbers.shape(), tensorflow::TensorShape({2, 2}));
  EXPECT_THAT(ElementsOf<int64_t>(numbers), ElementsAre(3, 4, 5, 6));
  const Tensor strings = Stack({{&Strings({3}, {"x", "y", "z"}), 1, 2}});
  EXPECT_THAT(ElementsOf<tstring>(strings), ElementsAre("y", "z"));
  // Packed varints, which are not laid out in memory.
  EXPECT_THAT(ElementsOf<int64_t>(Stack({{&Numbers({3}, {1, 2, 3}), 1, 2}})), ElementsAre(2, 3));
}

TEST_F(RowBlocksTest, ShorterListsAreFilledUp) {
  const std::vector<RowBlock> blocks = {AllRows(Numbers({2, 1}, {1, 2}), 2),
                                        AllRows(Numbers({1, 3}, {3, 4, 5}), 1)};
  EXPECT_THAT(ElementsOf<int64_t>(Stack(blocks)), ElementsAre(1, 0, 0, 2, 0, 0, 3, 4, 5));
  EXPECT_THAT(ElementsOf<int64_t>(Stack(blocks, PadWith::kFirstValue)),
              ElementsAre(1, 1, 1, 2, 1, 1, 3, 4, 5));
}

TEST_F(RowBlocksTest, AShorterListThatIsRepeatedIsFilledUp) {
  const Tensor stacked =
      Stack({AllRows(Numbers({1, 1}, {1}), 2), AllRows(Numbers({1, 2}, {3, 4}), 1)});
  EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(1, 0, 1, 0, 3, 4));
}

TEST_F(RowBlocksTest, EveryInnerDimensionIsFilledUp) {
  const Tensor stacked =
      Stack({AllRows(Numbers({1, 2, 1}, {1, 2}), 2), AllRows(Numbers({1, 1, 2}, {3, 4}), 1)});
  EXPECT_THAT(ElementsOf<int64_t>(stacked), ElementsAre(1, 0, 2, 0, 1, 0, 2, 0, 3, 4, 0, 0));
}

TEST_F(RowBlocksTest, StringsAreStackedRepeatedAndFilledUp) {
  const std::vector<RowBlock> blocks = {AllRows(Strings({1, 1}, {"a"}), 2),
                                        AllRows(Strings({2, 2}, {"b", "c", "d", "e"}), 2)};
  EXPECT_THAT(ElementsOf<tstring>(Stack(blocks)),
              ElementsAre("a", "", "a", "", "b", "c", "d", "e"));
  EXPECT_THAT(ElementsOf<tstring>(Stack(blocks, PadWith::kFirstValue)),
              ElementsAre("a", "a", "a", "a", "b", "c", "d", "e"));
}

TEST_F(RowBlocksTest, EmptyListsHaveRows) {
  const Input& empty = Numbers({2, 0}, {});
  EXPECT_THAT(ElementsOf<int64_t>(Stack({AllRows(empty, 2), AllRows(Numbers({1, 1}, {4}), 1)},
                                        PadWith::kFirstValue)),
              ElementsAre(0, 0, 4));
  EXPECT_EQ(Stack({AllRows(empty, 2)}).shape(), tensorflow::TensorShape({2, 0}));
}

TEST_F(RowBlocksTest, TheBytesBeyondThoseSentAreKnownBeforehand) {
  const Input& two = LaidOut({2, 1}, {1, 2});
  EXPECT_EQ(ExtraBytes({AllRows(two, 2)}, PadWith::kZeros), 0);
  const Input& three = LaidOut({1, 3}, {1, 2, 3});
  EXPECT_EQ(ExtraBytes({AllRows(two, 2), AllRows(three, 1)}, PadWith::kZeros), 8 * (9 - 5));
  EXPECT_EQ(ExtraBytes({AllRows(three, 100)}, PadWith::kZeros), 8 * 3 * 99);
}

TEST_F(RowBlocksTest, AStringThatIsRepeatedCountsEachTime) {
  const std::string text(1000, 'x');
  const Input& column = Strings({1}, {text});
  EXPECT_EQ(ExtraBytes({AllRows(column, 10)}, PadWith::kZeros), 10 * sizeof(tstring) + 9 * 1000);
  const Input& list = Strings({1, 1}, {text});
  const Input& longer = Strings({1, 3}, {"", "", ""});
  EXPECT_EQ(ExtraBytes({AllRows(list, 1), AllRows(longer, 1)}, PadWith::kFirstValue),
            6 * sizeof(tstring) + 2 * 1000);
  EXPECT_EQ(ExtraBytes({AllRows(list, 1), AllRows(longer, 1)}, PadWith::kZeros),
            6 * sizeof(tstring));
}

TEST_F(RowBlocksTest, ABoolThatIsNoneIsAnError) {
  Column column;
  column.dtype = DT_BOOL;
  column.dims = {2};
  column.values.tensor_content = Bytes(std::string_view("\1\2"));
  Tensor tensor;
  EXPECT_EQ(StackRows({AllRows(Add(column), 2)}, PadWith::kZeros, &tensor).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RowBlocksTest, WhatHasToBeDecodedRepeatedOrCheckedIsNotLaidOut) {
  EXPECT_TRUE(IsLaidOut(LaidOut({2}, {1, 2})));
  EXPECT_TRUE(IsLaidOut(Strings({2}, {"a", "b"})));
  EXPECT_FALSE(IsLaidOut(Numbers({2}, {1, 2})));
  EXPECT_FALSE(IsLaidOut(Strings({3}, {"the last one is repeated"})));
  Column bools;
  bools.dtype = DT_BOOL;
  bools.dims = {2};
  bools.values.tensor_content = Bytes(std::string_view("\1\1"));
  EXPECT_FALSE(IsLaidOut(Add(bools)));
}

TEST_F(RowBlocksTest, ADecodedColumnIsReadAsOneOnTheWire) {
  const TensorInput numbers("numbers", Stack({AllRows(Numbers({2}, {1, 2}), 2)}));
  EXPECT_TRUE(IsLaidOut(numbers));
  EXPECT_EQ(numbers.WireBytes(), 16);
  EXPECT_THAT(ElementsOf<int64_t>(Stack({{&numbers, 1, 1}})), ElementsAre(2));
}

}  // namespace
}  // namespace colcast::engine
