#include "server/items/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/items/testing.h"

namespace colcast::items {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Status Read(const TestFile& file) {
  std::shared_ptr<const TableFile> read;
  return ReadTestFile(file.Bytes(), &read);
}

void ExpectWrong(const TestFile& file, const std::string& what) {
  const Status status = Read(file);
  EXPECT_EQ(status.code, StatusCode::kDataLoss);
  EXPECT_THAT(status.message, HasSubstr(what));
}

TEST(TableFileTest, ReadsKeysAndColumns) {
  std::shared_ptr<const TableFile> file;
  const Status status = ReadTestFile(MakeTestTable({5, 3, 1}).Bytes(), &file);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(file->rows(), 3);
  EXPECT_EQ(file->header().key, "item_id");
  EXPECT_EQ(file->keys().numbers[1], 3);
  const TableColumn& name = file->columns()[file->features().Find("name")];
  EXPECT_EQ(name.texts[0], "item 5");
  const TableColumn& tags = file->columns()[file->features().Find("tags")];
  EXPECT_THAT(std::vector<int64_t>(tags.splits.begin(), tags.splits.end()),
              ElementsAre(0, 2, 2, 3));
}

TEST(TableFileTest, ReadsATableWithoutRows) { EXPECT_TRUE(Read(MakeTestTable({})).ok()); }

TEST(TableFileTest, ReadsTextKeys) {
  TestFile table = MakeTestTable({1, 2});
  table.tensors.erase("key/values");
  table.SetTextKeys({"a", std::string(1 << 20, 'b')});
  std::shared_ptr<const TableFile> file;
  ASSERT_TRUE(ReadTestFile(table.Bytes(), &file).ok());
  EXPECT_EQ(file->keys()[1].size(), 1 << 20);
}

TEST(TableFileTest, HashesAgreeWithTheBuilder) {
  const int64_t number = 42;
  EXPECT_EQ(HashOf({reinterpret_cast<const char*>(&number), sizeof(number)}), 0xd5a6f8c838df27c8);
  EXPECT_EQ(HashOf("a"), 0xe6c632b61e964e1f);
}

TEST(TableFileTest, RefusesInvalidHeaderEntries) {
  const struct {
    const char* entry;
    const char* value;
    const char* error;
  } kCases[] = {
      {"checksum", "0123456789abcdef", "expected 0123456789abcdef"},
      {"key_dtype", "float32", "key_dtype is float32, expected int64 or string"},
      {"key_dtype", "string", "no tensor \"key/offsets\""},
      {"format_version", "2", "format_version is 2, expected 1"},
  };
  for (const auto& [entry, value, error] : kCases) {
    TestFile table = MakeTestTable({1});
    table.metadata[entry] = value;
    ExpectWrong(table, error);
  }
}

TEST(TableFileTest, RefusesRepeatedKeysAndAbbreviatesLongOnes) {
  ExpectWrong(MakeTestTable({1, 2, 1}), "key 1 appears twice, in rows 0 and 2");
  TestFile table = MakeTestTable({1, 2});
  const std::string key(1 << 20, 'b');
  table.SetTextKeys({key, key});
  ExpectWrong(table, "key \"" + std::string(60, 'b') + "...\" appears twice, in rows 0 and 1");
}

TEST(TableFileTest, RefusesBigEndianFiles) {
  std::string bytes = MakeTestTable({1}).Bytes();
  std::reverse(bytes.begin(), bytes.begin() + 8);
  std::shared_ptr<const TableFile> file;
  EXPECT_THAT(ReadTestFile(bytes, &file).message, HasSubstr("little-endian?"));
}

TEST(TableFileTest, RefusesHeadersThatAreTooLarge) {
  const auto with_header = [](size_t header, size_t data) {
    std::string bytes(sizeof(uint64_t) + header + data, ' ');
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  };
  std::shared_ptr<const TableFile> file;
  EXPECT_THAT(ReadTestFile(with_header((1 << 20) + 9, 8), &file).message,
              HasSubstr("a header of 1048585 bytes for 8 bytes of data"));
  EXPECT_THAT(ReadTestFile(with_header((8 << 20) + 1, 9 << 20), &file).message,
              HasSubstr("at most 8388608 are allowed"));
  std::string deep = with_header(3 << 20, 3 << 20);
  std::fill_n(deep.begin() + sizeof(uint64_t), 3 << 20, '[');
  EXPECT_THAT(ReadTestFile(deep, &file).message, HasSubstr("not a JSON object"));
}

TEST(TableFileTest, RefusesInvalidTensors) {
  const struct {
    const char* tensor;
    tables::TestTensor value;
    const char* error;
  } kCases[] = {
      {"index/rows", TensorOf<uint32_t>("U32", {0, 1, 3}), "is 3, but there are 3 rows"},
      {"index/starts", TensorOf<uint32_t>("U32", {0, 2, 1, 3}), "one more than a power of two"},
      {"index/starts", TensorOf<uint32_t>("U32", {0, 4, 3}), "\"index/starts\"[2] is 3, after 4"},
      {"column/tags/splits", TensorOf<int64_t>("I64", {0, 4, 3, 3}),
       "\"column/tags/splits\"[2] is 3, after 4"},
      {"column/name/offsets", TensorOf<int64_t>("I64", {0, 6, 12, 99}),
       "ends with 99, expected 18"},
      {"column/price", TensorOf<float>("F32", {1, 2}),
       "\"column/price\" is F32[2], expected F32[3]"},
  };
  for (const auto& [tensor, value, error] : kCases) {
    TestFile table = MakeTestTable({1, 2, 3});
    table.tensors[tensor] = value;
    ExpectWrong(table, error);
  }
  TestFile table = MakeTestTable({1, 2, 3});
  table.SetKeys({"a", "b", "c"}, 3);
  ExpectWrong(table, "is in the wrong bucket");
  table = MakeTestTable({1});
  table.tensors.erase("column/price");
  ExpectWrong(table, "no tensor \"column/price\"");
}

TEST(TableFileTest, RefusesTruncatedFiles) {
  const std::string bytes = MakeTestTable({5, 3, 1}).Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::shared_ptr<const TableFile> file;
    EXPECT_FALSE(ReadTestFile(bytes.substr(0, size), &file).ok()) << size;
  }
}

TEST(TableFileTest, FlippedBitsInTheDataAreDetected) {
  const std::string bytes = MakeTestTable({5, 3, 1}).Bytes();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    std::shared_ptr<const TableFile> file;
    const bool read = ReadTestFile(flipped, &file).ok();
    if (bit / 8 >= sizeof(header) + header) {
      EXPECT_FALSE(read) << bit;
    }
  }
}

}  // namespace
}  // namespace colcast::items
