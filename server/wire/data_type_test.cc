#include "server/wire/data_type.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/text.h"

namespace colcast {
namespace {

TEST(DataTypeTest, ElementSizesAreThoseInMemory) {
  EXPECT_EQ(ElementSize(DT_BOOL), 1u);
  EXPECT_EQ(ElementSize(DT_HALF), 2u);
  EXPECT_EQ(ElementSize(DT_FLOAT), 4u);
  EXPECT_EQ(ElementSize(DT_INT64), 8u);
  EXPECT_EQ(ElementSize(DT_COMPLEX64), 8u);
  EXPECT_EQ(ElementSize(DT_COMPLEX128), 16u);
  EXPECT_EQ(ElementSize(DT_INT4), 1u);
}

TEST(DataTypeTest, OtherDtypesHaveNoElementSize) {
  for (const int dtype : {DT_INVALID, DT_STRING, DT_RESOURCE, DT_VARIANT}) {
    EXPECT_EQ(ElementSize(static_cast<DataType>(dtype)), 0u) << dtype;
  }
  for (const int unknown : {-1, 33, 101, 1 << 30}) {
    EXPECT_EQ(ElementSize(static_cast<DataType>(unknown)), 0u) << unknown;
  }
}

TEST(DataTypeTest, NamesAreTensorFlows) {
  EXPECT_EQ(DataTypeName(DT_INVALID), "DT_INVALID");
  EXPECT_EQ(DataTypeName(DT_STRING), "DT_STRING");
  EXPECT_EQ(DataTypeName(DT_UINT2), "DT_UINT2");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(100 + DT_INT64)), "DT_INT64_REF");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(77)), "dtype 77");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(100)), "dtype 100");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(-3)), "dtype -3");
}

TEST(DescribeTest, QuotesShortTextUnchanged) { EXPECT_EQ(Quoted("age"), "\"age\""); }

TEST(DescribeTest, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(Quoted(std::string(200, 'x')), "\"" + std::string(100, 'x') + "...\"");
  const std::string euro = "\xe2\x82\xac";
  std::string euros;
  for (int i = 0; i < 50; ++i) euros += euro;
  EXPECT_TRUE(IsValidUtf8(Quoted(euros)));
  EXPECT_LT(Quoted(euros).size(), 110u);
}

TEST(DescribeTest, ShapesHaveBrackets) {
  EXPECT_EQ(ShapeName(std::vector<int64_t>{}), "[]");
  EXPECT_EQ(ShapeName(std::vector<int64_t>{500, -1}), "[500,-1]");
  EXPECT_EQ(ShapeName(std::vector<int64_t>(17, 1)), "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...]");
}

TEST(DataTypeTest, HasTensorFlowsNamesAndSizes) {
  EXPECT_EQ(DataTypeName(DT_INT64), "DT_INT64");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(109)), "DT_INT64_REF");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(77)), "dtype 77");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(-1)), "dtype -1");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(INT32_MIN)), "dtype -2147483648");
  EXPECT_EQ(ElementSize(DT_COMPLEX128), 16u);
  EXPECT_EQ(ElementSize(DT_STRING), 0u);
  EXPECT_EQ(ElementSize(static_cast<DataType>(109)), 0u);
}

TEST(ReadableTest, ShortUtf8IsUnchanged) {
  EXPECT_EQ(Readable(""), "");
  EXPECT_EQ(Readable("caf\u00e9 'x'\n"), "caf\u00e9 'x'\n");
}

TEST(ReadableTest, OtherBytesAreEscaped) {
  EXPECT_EQ(Readable("value: '\xff\x0a\x80'"), "value: '\\xff\n\\x80'");
}

TEST(ReadableTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Readable(std::string(5000, 'a')), std::string(1000, 'a') + "...");
  EXPECT_EQ(Readable(std::string(999, 'a') + "\u00e9\u00e9"), std::string(999, 'a') + "...");
}

}  // namespace
}  // namespace colcast
