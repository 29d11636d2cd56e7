#include "server/inference/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace colcast::inference {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Record(const std::string& data) {
  const std::string length = LittleEndian(data.size(), 8);
  return length + LittleEndian(MaskedCrc32c(length), 4) + data +
         LittleEndian(MaskedCrc32c(data), 4);
}

class TfRecordTest : public testing::Test {
 protected:
  ~TfRecordTest() override { std::filesystem::remove(path_); }

  std::vector<std::string> Read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    TfRecordReader reader(path_);
    std::vector<std::string> records;
    std::string record;
    for (bool at_end = false;;) {
      status_ = reader.Next(&record, &at_end);
      if (!status_.ok() || at_end) return records;
      records.push_back(record);
    }
  }

  Status status_;
  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TfRecordTest, ChecksumsAreMaskedCrc32cs) {
  // The CRC catalog's check value: the CRC-32C of "123456789" is 0xE3069283.
  EXPECT_EQ(MaskedCrc32c("123456789"), (0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u);
  // RFC 3720, B.4: the bytes 0 to 31.
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  EXPECT_EQ(MaskedCrc32c(ascending), (0x46DD794Eu >> 15 | 0x46DD794Eu << 17) + 0xA282EAD8u);
}

TEST_F(TfRecordTest, WritesARecord) {
  for (const std::string data : {"", "one", "123456789", "more than eight bytes, twice"}) {
    EXPECT_EQ(TfRecord(data), Record(data));
  }
}

TEST_F(TfRecordTest, ReadsRecordsInOrder) {
  EXPECT_THAT(Read(Record("one") + Record("") + Record("three")), ElementsAre("one", "", "three"));
  EXPECT_TRUE(status_.ok()) << status_.message;
}

TEST_F(TfRecordTest, AnEmptyOrMissingFileHasNoRecords) {
  EXPECT_THAT(Read(""), IsEmpty());
  EXPECT_TRUE(status_.ok());
  std::string record;
  bool at_end = false;
  EXPECT_TRUE(TfRecordReader("/nowhere/at/all").Next(&record, &at_end).ok());
  EXPECT_TRUE(at_end);
}

TEST_F(TfRecordTest, ErrorsNameTheDamagedRecord) {
  const std::string first = Record("one"), second = Record("two");
  for (size_t byte = 0; byte < second.size(); ++byte) {
    std::string damaged = second;
    damaged[byte] ^= 1;
    EXPECT_THAT(Read(first + damaged), ElementsAre("one"));
    EXPECT_EQ(status_.code, StatusCode::kDataLoss);
    EXPECT_THAT(status_.message, HasSubstr("the record at byte " + std::to_string(first.size())));
  }
}

TEST_F(TfRecordTest, ATruncatedRecordIsDataLoss) {
  const std::string record = Record("one");
  for (size_t size = 1; size < record.size(); ++size) {
    EXPECT_THAT(Read(record.substr(0, size)), IsEmpty());
    EXPECT_EQ(status_.code, StatusCode::kDataLoss);
  }
}

TEST_F(TfRecordTest, ALengthBeyondTheFileAllocatesNoMemory) {
  const std::string length = LittleEndian(uint64_t{1} << 60, 8);
  EXPECT_THAT(Read(length + LittleEndian(MaskedCrc32c(length), 4) + "data"), IsEmpty());
  EXPECT_THAT(status_.message, HasSubstr("ends within its data"));
}

}  // namespace
}  // namespace colcast::inference
