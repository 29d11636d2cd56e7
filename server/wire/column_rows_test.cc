#include "server/wire/column_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "server/wire/tensor_values.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

using ::testing::ElementsAre;

// A column of int64 as clients send it: packed varints.
Column Numbers(std::vector<int64_t> dims, const std::string& varints, int64_t count) {
  Column column;
  column.dtype = DT_INT64;
  column.dims = std::move(dims);
  column.values.packed = true;
  column.values.payload = Bytes(varints);
  column.values.count = count;
  return column;
}

Column Strings(std::vector<int64_t> dims, const std::vector<std::string_view>& values) {
  Column column;
  column.dtype = DT_STRING;
  column.dims = std::move(dims);
  for (const std::string_view value : values) column.values.AddString(value);
  return column;
}

RowBlock Rows(const Column& column, int64_t rows) {
  RowBlock block{&column, 0, rows};
  EXPECT_TRUE(ElementCount(column, &block.elements).ok());
  return block;
}

std::vector<int64_t> NumbersOf(const Column& column) {
  int64_t count;
  EXPECT_TRUE(ElementCount(column, &count).ok());
  std::vector<int64_t> values(count);
  EXPECT_TRUE(CopyValues(column, count, values.data()).ok());
  return values;
}

std::vector<std::string> StringsOf(const Column& column) {
  std::vector<std::string> values;
  for (const Bytes& value : column.values.strings) values.push_back(value.ToString());
  return values;
}

class ColumnRowsTest : public ::testing::Test {
 protected:
  const Column& Join(const std::vector<RowBlock>& blocks, PadWith pad = PadWith::kZeros) {
    EXPECT_TRUE(JoinRows("joined", blocks, pad, &request_).ok());
    return *request_.Find("joined");
  }

  DecodedRequest request_;
};

TEST_F(ColumnRowsTest, RowsAreTakenOutOfAColumnAsItWasSentIfItIsLaidOut) {
  const std::string bytes("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
  Column numbers;
  numbers.name = "numbers";
  numbers.dtype = DT_INT64;
  numbers.dims = {2};
  numbers.values.tensor_content = Bytes(bytes);
  ASSERT_TRUE(IsLaidOut(numbers, 2));
  Column texts;
  texts.name = "texts";
  texts.dtype = DT_STRING;
  texts.dims = {2};
  for (const std::string_view text : {"a", "b"}) texts.values.AddString(Bytes(text));
  ASSERT_TRUE(IsLaidOut(texts, 2));
  DecodedRequest taken;
  TakeRows(numbers, 1, 1, &taken);
  TakeRows(texts, 1, 1, &taken);
  EXPECT_EQ(taken.Find("numbers")->values.tensor_content.data(),
            numbers.values.tensor_content.data() + 8);
  EXPECT_THAT(NumbersOf(*taken.Find("numbers")), ElementsAre(2));
  EXPECT_EQ(taken.Find("texts")->values.strings[0].view(), "b");
}

TEST_F(ColumnRowsTest, WhatHasToBeDecodedRepeatedOrCheckedIsNotLaidOut) {
  const std::string varints = Varints({1, 2});
  EXPECT_FALSE(IsLaidOut(Numbers({2}, varints, 2), 2));
  Column texts;
  texts.dtype = DT_STRING;
  texts.dims = {3};
  texts.values.AddString(Bytes(std::string_view("the last one is repeated")));
  EXPECT_FALSE(IsLaidOut(texts, 3));
  const std::string flags("\2\1", 2);
  Column bools;
  bools.dtype = DT_BOOL;
  bools.dims = {2};
  bools.values.tensor_content = Bytes(flags);
  EXPECT_FALSE(IsLaidOut(bools, 2));
}

TEST_F(ColumnRowsTest, RowsFollowOneAnother) {
  const std::string first = Varints({1, 300});
  const std::string second = Varints({7});
  const Column a = Numbers({2}, first, 2);
  const Column b = Numbers({1}, second, 1);
  const Column& joined = Join({Rows(a, 2), Rows(b, 1)});
  EXPECT_THAT(joined.dims, ElementsAre(3));
  EXPECT_THAT(NumbersOf(joined), ElementsAre(1, 300, 7));
}

TEST_F(ColumnRowsTest, ASingleRowIsRepeated) {
  const std::string first = Varints({1, 2});
  const std::string second = Varints({3, 4, 5, 6});
  const Column a = Numbers({1, 2}, first, 2);
  const Column b = Numbers({2, 2}, second, 4);
  EXPECT_THAT(NumbersOf(Join({Rows(a, 3), Rows(b, 2)})), ElementsAre(1, 2, 1, 2, 1, 2, 3, 4, 5, 6));
}

TEST_F(ColumnRowsTest, AListThatRepeatsItsLastValueEndsWithItsBlock) {
  const std::string first = Varints({5});
  const std::string second = Varints({6, 7});
  const Column a = Numbers({3}, first, 1);
  const Column b = Numbers({2}, second, 2);
  EXPECT_THAT(NumbersOf(Join({Rows(a, 3), Rows(b, 2)})), ElementsAre(5, 5, 5, 6, 7));
}

TEST_F(ColumnRowsTest, OnlyTheFirstRowIsTakenWhereItIsAskedFor) {
  const std::string values = Varints({8, 9});
  const Column a = Numbers({2}, values, 2);
  RowBlock again = Rows(a, 3);
  again.first_row_only = true;
  EXPECT_THAT(NumbersOf(Join({Rows(a, 2), again})), ElementsAre(8, 9, 8, 8, 8));
}

TEST_F(ColumnRowsTest, ShorterListsAreFilledUp) {
  const std::string first = Varints({1, 2});
  const std::string second = Varints({3, 4, 5});
  const Column a = Numbers({2, 1}, first, 2);
  const Column b = Numbers({1, 3}, second, 3);
  const Column& zeros = Join({Rows(a, 2), Rows(b, 1)});
  EXPECT_THAT(zeros.dims, ElementsAre(3, 3));
  EXPECT_THAT(NumbersOf(zeros), ElementsAre(1, 0, 0, 2, 0, 0, 3, 4, 5));
  request_.Clear();
  EXPECT_THAT(NumbersOf(Join({Rows(a, 2), Rows(b, 1)}, PadWith::kFirstValue)),
              ElementsAre(1, 1, 1, 2, 1, 1, 3, 4, 5));
}

TEST_F(ColumnRowsTest, EveryInnerDimensionIsFilledUp) {
  const std::string first = Varints({1, 2});
  const std::string second = Varints({3, 4});
  const Column a = Numbers({1, 2, 1}, first, 2);
  const Column b = Numbers({1, 1, 2}, second, 2);
  EXPECT_THAT(NumbersOf(Join({Rows(a, 2), Rows(b, 1)})),
              ElementsAre(1, 0, 2, 0, 1, 0, 2, 0, 3, 4, 0, 0));
}

TEST_F(ColumnRowsTest, StringsAreJoinedRepeatedAndFilledUp) {
  const Column a = Strings({1, 1}, {"a"});
  const Column b = Strings({2, 2}, {"b", "c", "d", "e"});
  EXPECT_THAT(StringsOf(Join({Rows(a, 2), Rows(b, 2)})),
              ElementsAre("a", "", "a", "", "b", "c", "d", "e"));
}

TEST_F(ColumnRowsTest, EmptyListsHaveRows) {
  const Column a = Numbers({2, 0}, "", 0);
  const std::string values = Varints({4});
  const Column b = Numbers({1, 1}, values, 1);
  EXPECT_THAT(NumbersOf(Join({Rows(a, 2), Rows(b, 1)}, PadWith::kFirstValue)),
              ElementsAre(0, 0, 4));
  request_.Clear();
  EXPECT_THAT(Join({Rows(a, 2)}).dims, ElementsAre(2, 0));
}

TEST_F(ColumnRowsTest, TheBytesAreKnownBeforehand) {
  const std::string values = Varints({1, 2});
  const Column a = Numbers({2, 1}, values, 2);
  const Column b = Numbers({1, 3}, values, 2);
  EXPECT_EQ(JoinedBytes({Rows(a, 2), Rows(b, 1)}),
            Join({Rows(a, 2), Rows(b, 1)}).values.tensor_content.size());
  const Column wide = Numbers({1, int64_t{1} << 40}, values, 2);
  EXPECT_EQ(JoinedBytes({Rows(a, 2), Rows(wide, int64_t{1} << 30)}),
            8.0 * (2.0 + (int64_t{1} << 30)) * (int64_t{1} << 40));
}

TEST_F(ColumnRowsTest, ABoolThatIsNoneIsAnError) {
  Column column;
  column.dtype = DT_BOOL;
  column.dims = {2};
  column.values.tensor_content = Bytes(std::string_view("\1\2"));
  EXPECT_EQ(JoinRows("joined", {Rows(column, 2)}, PadWith::kZeros, &request_).code,
            StatusCode::kInvalidArgument);
}

TEST_F(ColumnRowsTest, RowsAreTakenOutOfWhatWasJoined) {
  const std::string values = Varints({1, 2, 3, 4, 5, 6});
  const Column numbers = Numbers({3, 2}, values, 6);
  const Column strings = Strings({3}, {"x", "y", "z"});
  ASSERT_TRUE(JoinRows("numbers", {Rows(numbers, 3)}, PadWith::kZeros, &request_).ok());
  ASSERT_TRUE(JoinRows("strings", {Rows(strings, 3)}, PadWith::kZeros, &request_).ok());
  DecodedRequest piece;
  TakeRows(*request_.Find("numbers"), 1, 2, &piece);
  TakeRows(*request_.Find("strings"), 1, 2, &piece);
  EXPECT_THAT(NumbersOf(*piece.Find("numbers")), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(piece.Find("numbers")->dims, ElementsAre(2, 2));
  EXPECT_THAT(StringsOf(*piece.Find("strings")), ElementsAre("y", "z"));
}

}  // namespace
}  // namespace colcast
