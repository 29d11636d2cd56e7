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

  // int64 values as packed varints, the form that clients send.
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

TEST_F(RowBlocksTest, RowsAreStackedRepeatedAndPadded) {
  constexpr PadWith kZeros = PadWith::kZeros, kFirst = PadWith::kFirstValue;
  const Input& packed = Numbers({2}, {8, 9});  // as varints, unlike columns that are laid out
  const Input& laid_out = LaidOut({2}, {8, 9});
  const std::vector<RowBlock> of_two_widths = {AllRows(Numbers({2, 1}, {1, 2}), 2),
                                               AllRows(Numbers({1, 3}, {3, 4, 5}), 1)};
  const std::vector<RowBlock> empty_beside_one = {AllRows(Numbers({2, 0}, {}), 2),
                                                  AllRows(Numbers({1, 1}, {4}), 1)};
  const struct {
    std::vector<RowBlock> blocks;
    PadWith pad;
    std::vector<int64_t> dims;
    std::vector<int64_t> values;
  } kCases[] = {
      {{AllRows(Numbers({2}, {1, 300}), 2), AllRows(Numbers({1}, {7}), 1)},
       kZeros,
       {3},
       {1, 300, 7}},
      // A single row is repeated, as is the first of several rows if a block asks for it.
      {{AllRows(Numbers({1, 2}, {1, 2}), 2), AllRows(Numbers({1, 2}, {3, 4}), 1)},
       kZeros,
       {3, 2},
       {1, 2, 1, 2, 3, 4}},
      {{AllRows(packed, 2), {&packed, 0, 3, true}}, kZeros, {5}, {8, 9, 8, 8, 8}},
      {{AllRows(laid_out, 2), {&laid_out, 0, 3, true}}, kZeros, {5}, {8, 9, 8, 8, 8}},
      // A column that leaves out repeated values is filled up only within its block.
      {{AllRows(Numbers({3}, {5}), 3), AllRows(Numbers({2}, {6, 7}), 2)},
       kZeros,
       {5},
       {5, 5, 5, 6, 7}},
      // Some rows are copied out.
      {{{&LaidOut({3, 2}, {1, 2, 3, 4, 5, 6}), 1, 2}}, kZeros, {2, 2}, {3, 4, 5, 6}},
      {{{&Numbers({3}, {1, 2, 3}), 1, 2}}, kZeros, {2}, {2, 3}},
      // Shorter rows are padded in every inner dimension.
      {of_two_widths, kZeros, {3, 3}, {1, 0, 0, 2, 0, 0, 3, 4, 5}},
      {of_two_widths, kFirst, {3, 3}, {1, 1, 1, 2, 1, 1, 3, 4, 5}},
      {{AllRows(Numbers({1, 1}, {1}), 2), AllRows(Numbers({1, 2}, {3, 4}), 1)},
       kZeros,
       {3, 2},
       {1, 0, 1, 0, 3, 4}},
      {{AllRows(Numbers({1, 2, 1}, {1, 2}), 2), AllRows(Numbers({1, 1, 2}, {3, 4}), 1)},
       kZeros,
       {3, 2, 2},
       {1, 0, 2, 0, 1, 0, 2, 0, 3, 4, 0, 0}},
      {empty_beside_one, kFirst, {3, 1}, {0, 0, 4}},
      {{empty_beside_one[0]}, kZeros, {2, 0}, {}},
  };
  for (const auto& one : kCases) {
    const Tensor stacked = Stack(one.blocks, one.pad);
    EXPECT_EQ(stacked.shape(), tensorflow::TensorShape(one.dims));
    EXPECT_EQ(ElementsOf<int64_t>(stacked), one.values);
  }
}

TEST_F(RowBlocksTest, StringsAreStackedRepeatedAndPadded) {
  const std::vector<RowBlock> blocks = {AllRows(Strings({1, 1}, {"a"}), 2),
                                        AllRows(Strings({2, 2}, {"b", "c", "d", "e"}), 2)};
  EXPECT_THAT(ElementsOf<tstring>(Stack(blocks)),
              ElementsAre("a", "", "a", "", "b", "c", "d", "e"));
  EXPECT_THAT(ElementsOf<tstring>(Stack(blocks, PadWith::kFirstValue)),
              ElementsAre("a", "a", "a", "a", "b", "c", "d", "e"));
  const Tensor some = Stack({{&Strings({3}, {"x", "y", "z"}), 1, 2}});
  EXPECT_THAT(ElementsOf<tstring>(some), ElementsAre("y", "z"));
}

TEST_F(RowBlocksTest, ExtraBytesCountPaddingAndRepetition) {
  const Input& two = LaidOut({2, 1}, {1, 2});
  EXPECT_EQ(ExtraBytes({AllRows(two, 2)}, PadWith::kZeros), 0);
  const Input& three = LaidOut({1, 3}, {1, 2, 3});
  EXPECT_EQ(ExtraBytes({AllRows(two, 2), AllRows(three, 1)}, PadWith::kZeros), 8 * (9 - 5));
  EXPECT_EQ(ExtraBytes({AllRows(three, 100)}, PadWith::kZeros), 8 * 3 * 99);
}

TEST_F(RowBlocksTest, ExtraBytesCountEveryCopyOfAString) {
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

TEST_F(RowBlocksTest, AnInvalidBoolIsRefused) {
  Column column;
  column.dtype = DT_BOOL;
  column.dims = {2};
  column.values.tensor_content = Bytes(std::string_view("\1\2"));
  Tensor tensor;
  EXPECT_EQ(StackRows({AllRows(Add(column), 2)}, PadWith::kZeros, &tensor).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RowBlocksTest, ColumnsThatMustBeDecodedRepeatedOrCheckedAreNotLaidOut) {
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

TEST_F(RowBlocksTest, RowsOfATensorInputCanBeStacked) {
  const TensorInput numbers("numbers", Stack({AllRows(Numbers({2}, {1, 2}), 2)}));
  EXPECT_TRUE(IsLaidOut(numbers));
  EXPECT_EQ(numbers.WireBytes(), 16);
  EXPECT_THAT(ElementsOf<int64_t>(Stack({{&numbers, 1, 1}})), ElementsAre(2));
}

}  // namespace
}  // namespace colcast::engine
