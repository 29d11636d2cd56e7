#include "server/wire/example_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using testing::ElementsAre;

std::string Int64List(std::string_view list) { return BytesField(3, list); }
std::string FloatList(std::string_view list) { return BytesField(2, list); }
std::string BytesList(std::string_view list) { return BytesField(1, list); }

// The numbers of a Feature; fails the test if they cannot be read.
template <typename T>
std::vector<T> Numbers(DataType dtype, const std::string& feature) {
  std::string bytes;
  const int64_t count = AppendValues(dtype, feature, &bytes);
  EXPECT_EQ(count * sizeof(T), bytes.size());
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  std::vector<T> same(count);
  EXPECT_EQ(ReadNumbers(dtype, feature, count, same.data()), count);
  EXPECT_EQ(Raw(values), Raw(same));
  return values;
}

int64_t Read(DataType dtype, const std::string& feature) {
  std::string out = "kept";
  const int64_t count = AppendValues(dtype, feature, &out);
  EXPECT_EQ(out.substr(0, 4), "kept");
  return count;
}

TEST(ExampleValues, IntegersPackedAndUnpacked) {
  const std::string packed = BytesField(1, Varints({1, 300, ~uint64_t{0}}));
  EXPECT_THAT(Numbers<int64_t>(DT_INT64, Int64List(packed)), ElementsAre(1, 300, -1));
  const std::string unpacked = VarintField(1, 1) + VarintField(1, 300);
  EXPECT_THAT(Numbers<int64_t>(DT_INT64, Int64List(unpacked)), ElementsAre(1, 300));
}

TEST(ExampleValues, TheSmallestAndTheLargestInteger) {
  const auto smallest = uint64_t{1} << 63, largest = smallest - 1;
  EXPECT_THAT(
      Numbers<int64_t>(DT_INT64, Int64List(BytesField(1, Varints({smallest, largest})))),
      ElementsAre(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
}

TEST(ExampleValues, FloatsPackedAndUnpacked) {
  const std::string packed = BytesField(1, Raw<float>({0.5f, -2.0f}));
  EXPECT_THAT(Numbers<float>(DT_FLOAT, FloatList(packed)), ElementsAre(0.5f, -2.0f));
  const std::string tag = Tag(1, kFixed32Type);
  const std::string unpacked = tag + Raw<float>({0.5f}) + tag + Raw<float>({-2.0f});
  EXPECT_THAT(Numbers<float>(DT_FLOAT, FloatList(unpacked)), ElementsAre(0.5f, -2.0f));
}

TEST(ExampleValues, StringsBecomeRecordsOfAStringTensor) {
  std::string out = "before";
  const std::string list = BytesField(1, "ann") + BytesField(1, "") + BytesField(1, "b\0c");
  EXPECT_EQ(AppendValues(DT_STRING, BytesList(list), &out), 3);
  EXPECT_EQ(out, "before" + BytesField(8, "ann") + BytesField(8, "") + BytesField(8, "b\0c"));
}

TEST(ExampleValues, AnEmptyListHasNoValues) {
  EXPECT_EQ(Read(DT_INT64, Int64List("")), 0);
  EXPECT_EQ(Read(DT_INT64, Int64List(BytesField(1, ""))), 0);
  EXPECT_EQ(Read(DT_FLOAT, FloatList("")), 0);
  EXPECT_EQ(Read(DT_FLOAT, FloatList(BytesField(1, ""))), 0);
  EXPECT_EQ(Read(DT_STRING, BytesList("")), 0);
}

TEST(ExampleValues, AnotherKindOfListIsRefused) {
  for (const std::string& feature : {BytesList(""), FloatList(""), BytesField(4, "")}) {
    EXPECT_EQ(Read(DT_INT64, feature), kUnreadable);
  }
  EXPECT_EQ(Read(DT_FLOAT, Int64List("")), kUnreadable);
  EXPECT_EQ(Read(DT_STRING, Int64List("")), kUnreadable);
}

TEST(ExampleValues, MoreNumbersThanExpectedAreRefused) {
  int64_t values[2];
  const std::string feature = Int64List(BytesField(1, Varints({1, 2, 3})));
  EXPECT_EQ(ReadNumbers(DT_INT64, feature, 2, values), kUnreadable);
  EXPECT_EQ(ReadNumbers(DT_FLOAT, FloatList(BytesField(1, Raw<float>({1, 2, 3}))), 2, values),
            kUnreadable);
}

// Protobuf merges the lists; TensorFlow's fast parser reads only some of them.
TEST(ExampleValues, AListInSeveralPiecesIsRefused) {
  const std::string one = BytesField(1, Varints({1}));
  EXPECT_EQ(Read(DT_INT64, Int64List(one) + Int64List(one)), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, Int64List(one + one)), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, Int64List(one + VarintField(1, 2))), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, Int64List(VarintField(1, 2) + one)), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, Int64List(one) + VarintField(9, 1)), kUnreadable);
}

TEST(ExampleValues, MalformedListsAreRefused) {
  EXPECT_EQ(Read(DT_INT64, "\x1a"), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, "\x1a\x05\x0a\x01\x01"), kUnreadable);  // cut off
  // the run claims more bytes
  EXPECT_EQ(Read(DT_INT64, "\x1a\x03\x0a\x02\x01"), kUnreadable);
  // the varint does not end
  EXPECT_EQ(Read(DT_INT64, "\x1a\x03\x0a\x01\x81"), kUnreadable);
  // not a whole number of floats
  EXPECT_EQ(Read(DT_FLOAT, "\x12\x05\x0a\x03\x01\x02\x03"), kUnreadable);
  EXPECT_EQ(Read(DT_FLOAT, "\x12\x03\x0d\x01\x02"), kUnreadable);
  EXPECT_EQ(Read(DT_STRING, "\x0a\x03\x0a\x05\x61"), kUnreadable);
  EXPECT_EQ(Read(DT_STRING, "\x0a\x02\x12\x01"), kUnreadable);
}

TEST(ExampleValues, IntegersBeyond64BitsAreRefused) {
  const std::string nine(9, '\xff');
  EXPECT_EQ(Read(DT_INT64, Int64List(BytesField(1, nine + "\x01"))), 1);
  EXPECT_EQ(Read(DT_INT64, Int64List(BytesField(1, nine + "\x02"))), kUnreadable);
  EXPECT_EQ(Read(DT_INT64, Int64List(BytesField(1, nine + "\x81\x01"))), kUnreadable);
}

}  // namespace
}  // namespace colcast
