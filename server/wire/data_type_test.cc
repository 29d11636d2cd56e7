#include "server/wire/data_type.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/text.h"

namespace colcast {
namespace {

TEST(DataTypeTest, NamesAndSizesInMemoryAreTensorFlows) {
  const struct {
    int dtype;
    const char* name;
    size_t size;
  } kCases[] = {
      {DT_BOOL, "DT_BOOL", 1},
      {DT_HALF, "DT_HALF", 2},
      {DT_FLOAT, "DT_FLOAT", 4},
      {DT_INT64, "DT_INT64", 8},
      {DT_COMPLEX64, "DT_COMPLEX64", 8},
      {DT_COMPLEX128, "DT_COMPLEX128", 16},
      {DT_INT4, "DT_INT4", 1},
      {DT_UINT2, "DT_UINT2", 1},
      {DT_INVALID, "DT_INVALID", 0},
      {DT_STRING, "DT_STRING", 0},
      {DT_RESOURCE, "DT_RESOURCE", 0},
      {DT_VARIANT, "DT_VARIANT", 0},
      {109, "DT_INT64_REF", 0},
      {77, "dtype 77", 0},
      {100, "dtype 100", 0},
      {-3, "dtype -3", 0},
      {INT32_MIN, "dtype -2147483648", 0},
  };
  for (const auto& [dtype, name, size] : kCases) {
    EXPECT_EQ(DataTypeName(static_cast<DataType>(dtype)), name);
    EXPECT_EQ(ElementSize(static_cast<DataType>(dtype)), size) << name;
  }
}

TEST(DataTypeTest, DtypesAreFoundByExportAndOpenInferenceNames) {
  EXPECT_EQ(RecordedDataType("float32"), DT_FLOAT);
  EXPECT_EQ(RecordedDataType("float"), DT_INVALID);
  EXPECT_EQ(RecordedDataType(""), DT_INVALID);
  EXPECT_EQ(InferDataType("BYTES"), DT_STRING);
  EXPECT_EQ(InferDatatypeName(DT_BFLOAT16), "BF16");
  EXPECT_EQ(InferDatatypeName(DT_COMPLEX64), "");
}

TEST(DescribeTest, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(Quoted("age"), "\"age\"");
  EXPECT_EQ(Quoted(std::string(200, 'x')), "\"" + std::string(100, 'x') + "...\"");
  const std::string euro = "\xe2\x82\xac";
  std::string euros;
  for (int i = 0; i < 50; ++i) euros += euro;
  EXPECT_TRUE(IsValidUtf8(Quoted(euros)));
  EXPECT_LT(Quoted(euros).size(), 110u);
}

TEST(DescribeTest, ShapesAreShownInBrackets) {
  EXPECT_EQ(ShapeName(std::vector<int64_t>{}), "[]");
  EXPECT_EQ(ShapeName(std::vector<int64_t>{500, -1}), "[500,-1]");
  EXPECT_EQ(ShapeName(std::vector<int64_t>(17, 1)), "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...]");
}

TEST(ReadableTest, ShortUtf8IsUnchanged) {
  EXPECT_EQ(Readable(""), "");
  EXPECT_EQ(Readable("caf\u00e9 'x'\n"), "caf\u00e9 'x'\n");
}

TEST(ReadableTest, BytesOfInvalidUtf8AreEscaped) {
  EXPECT_EQ(Readable("value: '\xff\x0a\x80'"), "value: '\\xff\n\\x80'");
}

TEST(ReadableTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Readable(std::string(5000, 'a')), std::string(1000, 'a') + "...");
  EXPECT_EQ(Readable(std::string(999, 'a') + "\u00e9\u00e9"), std::string(999, 'a') + "...");
}

}  // namespace
}  // namespace colcast
