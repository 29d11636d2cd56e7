#include "server/tables/row_delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/tables/testing.h"

namespace colcast::tables {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestFile MakeDelta() {
  TestFile file;
  file.metadata = {{"format", "colcast-rows"},
                   {"format_version", "1"},
                   {"checkpoint", "0123"},
                   {"sequence", "7"}};
  file.tensors["table"] = {"U8", {5}, "users"};
  file.tensors["ids"] = TensorOf<int64_t>("I64", {2, 5});
  file.tensors["rows"] = TensorOf<float>("F32", {1, 2, 3, 4, 5, 6}, {2, 3});
  return file;
}

Status Read(const std::string& bytes, RowDelta* delta) {
  const TestBytes aligned(bytes);
  Safetensors file(aligned.view, aligned.owner, kRowsFormat);
  return RowDelta::Read(&file, delta);
}

void ExpectWrong(const TestFile& file, const std::string& says) {
  RowDelta delta;
  const Status status = Read(file.Bytes(), &delta);
  EXPECT_EQ(status.code, StatusCode::kDataLoss);
  EXPECT_THAT(status.message, HasSubstr(says));
}

TEST(RowDeltaTest, HasWhatTheFileSays) {
  const TestBytes bytes(MakeDelta().Bytes());
  Safetensors file(bytes.view, bytes.owner, kRowsFormat);
  RowDelta delta;
  ASSERT_TRUE(RowDelta::Read(&file, &delta).ok());
  EXPECT_EQ(delta.table, "users");
  EXPECT_THAT(std::vector<int64_t>(delta.ids.begin(), delta.ids.end()), ElementsAre(2, 5));
  EXPECT_EQ(delta.dtype, "F32");
  EXPECT_THAT(delta.shape, ElementsAre(2, 3));
  EXPECT_EQ(delta.row_bytes, 12);
  float first = 0;
  std::memcpy(&first, delta.rows + delta.row_bytes, sizeof(first));
  EXPECT_EQ(first, 4);
}

TEST(RowDeltaTest, RefusesIdsThatDoNotRise) {
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{5, 5}, {5, 2}, {-1, 2}}) {
    TestFile file = MakeDelta();
    file.tensors["ids"] = TensorOf("I64", ids);
    ExpectWrong(file, "\"ids\"[");
  }
}

TEST(RowDeltaTest, RefusesARowTooFewOrNone) {
  TestFile file = MakeDelta();
  file.tensors["ids"] = TensorOf<int64_t>("I64", {2, 5, 6});
  ExpectWrong(file, "\"rows\" is F32[2,3], expected a row for each of 3 ids");
  file.tensors["ids"] = TensorOf<int64_t>("I64", {}, {0});
  ExpectWrong(file, "0 rows");
  file = MakeDelta();
  file.tensors.erase("rows");
  ExpectWrong(file, "no tensor \"rows\"");
}

TEST(RowDeltaTest, RefusesAnotherKindOfFile) {
  TestFile file = MakeDelta();
  file.metadata["format"] = "colcast-items";
  ExpectWrong(file, "format is colcast-items, expected colcast-rows");
  file = MakeDelta();
  file.tensors.erase("table");
  ExpectWrong(file, "no tensor \"table\"");
}

TEST(RowDeltaTest, NoTruncatedFileIsRead) {
  const std::string bytes = MakeDelta().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    RowDelta delta;
    EXPECT_FALSE(Read(bytes.substr(0, size), &delta).ok()) << size;
  }
}

TEST(RowDeltaTest, AFlippedBitOfTheDataIsFound) {
  const std::string bytes = MakeDelta().Bytes();
  const size_t data = 2 * sizeof(int64_t) + 6 * sizeof(float) + 5;
  for (size_t bit = 8 * (bytes.size() - data); bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    RowDelta delta;
    EXPECT_THAT(Read(flipped, &delta).message, HasSubstr("checksum"));
  }
}

}  // namespace
}  // namespace colcast::tables
