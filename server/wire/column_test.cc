// Errors and limits. engine/fuzz/wire_fuzz.cc compares the values of every dtype and encoding with
// TensorFlow's.
#include "server/wire/column.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

std::string Shape(const std::vector<int64_t>& dims) {
  std::string shape;
  for (int64_t dim : dims) shape += BytesField(2, VarintField(1, dim));
  return BytesField(2, shape);
}

std::string TensorOf(DataType dtype, int64_t size, const std::string& values) {
  return VarintField(1, dtype) + Shape({size}) + values;
}

// Calls check(const Column&) with input "x", whose value is `tensor`, in every slicing.
template <typename Check>
void WithColumn(const std::string& tensor, Check&& check) {
  DecodedRequest request;
  ForEachSlicing(BytesField(2, BytesField(1, "x") + BytesField(2, tensor)),
                 [&](const Bytes& bytes) {
                   ASSERT_TRUE(DecodePredictRequest(bytes, &request).ok());
                   ASSERT_EQ(request.columns().size(), 1u);
                   check(request.columns()[0]);
                 });
}

template <typename T>
void ExpectElements(const std::string& tensor, const std::vector<T>& expected) {
  WithColumn(tensor, [&](const Column& column) {
    int64_t count = 0;
    ASSERT_TRUE(ElementCount(column, &count).ok());
    ASSERT_EQ(count, static_cast<int64_t>(expected.size()));
    EXPECT_TRUE(CheckValues(column, count).ok());
    std::vector<T> out(expected.size());
    const Status status = CopyValues(column, count, out.data());
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_TRUE(out.empty() ||
                std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) == 0)
        << ::testing::PrintToString(out);
  });
}

// Expects CheckValues() and CopyValues() to refuse to fill `count` elements from the column.
void ExpectRefused(const std::string& tensor, int64_t count, const std::string& error) {
  WithColumn(tensor, [&](const Column& column) {
    const Status status = CheckValues(column, count);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message, error);
    EXPECT_EQ(CopyValues(column, count, nullptr).message, error);
  });
}

TEST(CopyValuesTest, ReadsManyVarintsOfMixedSizes) {
  std::vector<uint64_t> values;
  for (int i = 0; i < 70; ++i) values.push_back(uint64_t{1} << i % 64);
  for (int i = 0; i < 70; ++i) values.push_back(i);
  ExpectElements<uint64_t>(TensorOf(DT_UINT64, 140, BytesField(17, Varints(values))), values);
}

TEST(CopyValuesTest, RefusesBoolsInTensorContentThatAreNeither0Nor1) {
  WithColumn(TensorOf(DT_BOOL, 3, BytesField(4, "\x01\x00\x02"s)), [](const Column& column) {
    uint8_t out[3];
    const Status status = CopyValues(column, 3, out);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message, "input \"x\": byte 2 of its values is 2, but a bool is 0 or 1");
  });
}

TEST(CheckValuesTest, RefusesExcessValues) {
  ExpectRefused(TensorOf(DT_INT64, 2, BytesField(10, Varints({1, 2, 3}))), 2,
                "input \"x\": 3 values were sent, but shape [2] has 2 elements");
  ExpectRefused(TensorOf(DT_INT64, 0, VarintField(10, 1)), 0,
                "input \"x\": 1 values were sent, but shape [0] has 0 elements");
  ExpectRefused(TensorOf(DT_COMPLEX64, 1, BytesField(9, Raw<float>({1, 2, 3, 4}))), 1,
                "input \"x\": 2 values were sent, but shape [1] has 1 elements");
}

// Tensor::FromProto() would ignore these values.
TEST(CheckValuesTest, RefusesValuesInTheWrongFieldOrBesideTensorContent) {
  ExpectRefused(TensorOf(DT_FLOAT, 1, BytesField(6, Raw<double>({3}))), 1,
                "input \"x\": it has values in double_val, but DT_FLOAT is read from float_val");
  ExpectRefused(TensorOf(DT_INT64, 1, VarintField(10, 1) + VarintField(7, 2)), 1,
                "input \"x\": it has values in int_val, but DT_INT64 is read from int64_val");
  ExpectRefused(TensorOf(DT_INT32, 1, VarintField(7, 5) + BytesField(4, Raw<int32_t>({7}))), 1,
                "input \"x\": it has values in int_val, but DT_INT32 is read from tensor_content");
}

TEST(CheckValuesTest, RefusesTensorContentOfTheWrongSize) {
  for (const char* content : {"1234567", "123456789", "1234"}) {
    ExpectRefused(TensorOf(DT_FLOAT, 2, BytesField(4, content)), 2,
                  "input \"x\": tensor_content has " + std::to_string(std::strlen(content)) +
                      " bytes, but its shape needs 2 elements of 4 bytes (DT_FLOAT)");
  }
  ExpectRefused(
      TensorOf(DT_FLOAT, 0, BytesField(4, "1234")), 0,
      "input \"x\": tensor_content has 4 bytes, but its shape needs 0 elements of 4 bytes "
      "(DT_FLOAT)");
}

TEST(CheckValuesTest, RefusesUnsupportedDtypes) {
  ExpectRefused(TensorOf(DT_INVALID, 1, ""), 1, "input \"x\": DT_INVALID cannot be sent");
  ExpectRefused(TensorOf(DT_RESOURCE, 1, ""), 1, "input \"x\": DT_RESOURCE cannot be sent");
  ExpectRefused(TensorOf(DT_VARIANT, 0, ""), 0, "input \"x\": DT_VARIANT cannot be sent");
  ExpectRefused(TensorOf(static_cast<DataType>(101), 1, ""), 1,
                "input \"x\": DT_FLOAT_REF cannot be sent");
  ExpectRefused(TensorOf(static_cast<DataType>(77), 1, ""), 1,
                "input \"x\": dtype 77 cannot be sent");
}

TEST(RepeatedStringBytesTest, CountsTheLastStringForEachMissingElement) {
  const std::string two = BytesField(8, "abc") + BytesField(8, "de");
  const auto expect = [](const std::string& values, int64_t count, double bytes) {
    WithColumn(TensorOf(DT_STRING, count, values),
               [&](const Column& column) { EXPECT_EQ(RepeatedStringBytes(column, count), bytes); });
  };
  expect(two, 2, 0);
  expect(two, 5, 3 * 2);
  expect("", 5, 0);
}

TEST(CheckValuesTest, LimitsTheMemoryFilledByRepetition) {
  const auto check = [](DataType dtype, int64_t count) {
    StatusCode code = StatusCode::kUnknown;
    WithColumn(TensorOf(dtype, count, ""),
               [&](const Column& column) { code = CheckValues(column, count).code; });
    return code;
  };
  EXPECT_EQ(check(DT_INT64, kMaxRepeatedBytes / 8), StatusCode::kOk);
  EXPECT_EQ(check(DT_INT64, kMaxRepeatedBytes / 8 + 1), StatusCode::kResourceExhausted);
  EXPECT_EQ(check(DT_STRING, kMaxRepeatedBytes / 24 + 1), StatusCode::kResourceExhausted);
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  WithColumn(TensorOf(DT_INT64, kHuge, VarintField(10, 1)), [](const Column& column) {
    EXPECT_EQ(CheckValues(column, kHuge).message,
              "input \"x\": 1 values were sent for shape [9223372036854775807], repeating them "
              "would fill more than 1024 MiB");
  });
}

TEST(ElementCountTest, RefusesInvalidShapes) {
  const auto expect = [](const std::string& tensor, const std::string& error) {
    WithColumn(tensor, [&](const Column& column) {
      int64_t count;
      const Status status = ElementCount(column, &count);
      EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message, error);
    });
  };
  expect(BytesField(2, VarintField(3, 1)), "input \"x\": its shape has unknown rank");
  expect(Shape({2, -3}), "input \"x\": dimension -3 in shape [2,-3]");
  expect(Shape({int64_t{1} << 32, int64_t{1} << 32}),
         "input \"x\": more elements than int64 can count in shape [4294967296,4294967296]");
  expect(Shape(std::vector<int64_t>(255, 1)), "input \"x\": more than 254 dimensions");
}

TEST(VisitStringsTest, RefusesInconsistentTensorContent) {
  const auto expect = [](const std::string& content, const std::string& error) {
    WithColumn(TensorOf(DT_STRING, 2, BytesField(4, content)), [&](const Column& column) {
      std::vector<Bytes> strings;
      const Status status = AddStrings(column, 2, &strings);
      EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message, error);
      EXPECT_TRUE(strings.empty());
    });
  };
  expect("\x00"s, "input \"x\": tensor_content of 1 bytes cannot hold 2 strings");
  expect(
      "\x01\x01"
      "a",
      "input \"x\": the 2 strings in tensor_content need 2 bytes after their "
      "lengths, 1 were sent");
  expect("\x01\x80",
         "input \"x\": tensor_content of 2 bytes ends or is malformed at the length of "
         "string 1 of 2");
  expect("\x80\x80\x80\x80\x80\x00\x00"s,
         "input \"x\": tensor_content of 7 bytes ends or is malformed at the length of string 0 of "
         "2");
}

TEST(VisitStringsTest, ReadsStoredStringsAndRepeatsTheLast) {
  Column column;
  column.dtype = DT_STRING;
  column.dims = {4};
  for (const std::string_view value : {"a", "", "bcd"}) column.values.AddString(value);
  EXPECT_EQ(StringsOf(column), (std::vector<std::string>{"a", "", "bcd", "bcd"}));
  EXPECT_EQ(RepeatedStringBytes(column, 5), 6);
  column.dims = {2};
  std::vector<Bytes> strings;
  EXPECT_EQ(AddStrings(column, 2, &strings).message,
            "input \"\": 3 values were sent, but shape [2] has 2 elements");
}

}  // namespace
}  // namespace colcast
