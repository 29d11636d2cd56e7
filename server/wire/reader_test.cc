#include "server/wire/reader.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

TEST(ReaderTest, ReadsTagsVarintsAndBytesAcrossAnySlices) {
  const std::string text =
      "\x08\xac\x02\x12\x03"
      "abc\x82\x01\x00"s;
  ForEachSlicing(text, [](const Bytes& bytes) {
    Reader reader(bytes);
    uint32_t tag = 0;
    uint64_t value = 0;
    Bytes body;
    ASSERT_TRUE(reader.ReadTag(&tag));
    EXPECT_EQ(tag, MakeTag(1, kVarintType));
    ASSERT_TRUE(reader.ReadVarint(&value));
    EXPECT_EQ(value, 300u);
    EXPECT_EQ(reader.offset(), 3u);
    ASSERT_TRUE(reader.ReadTag(&tag));
    EXPECT_EQ(tag, MakeTag(2, kLengthType));
    ASSERT_TRUE(reader.ReadBytes(&body));
    EXPECT_EQ(body.ToString(), "abc");
    ASSERT_TRUE(reader.ReadTag(&tag));
    EXPECT_EQ(tag, MakeTag(16, kLengthType));
    ASSERT_TRUE(reader.ReadBytes(&body));
    EXPECT_TRUE(body.empty());
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(reader.Rest().size(), 0u);
  });
}

TEST(ReaderTest, ShortRecordsAreReadUpToOneThatIsNot) {
  constexpr uint32_t kTag = MakeTag(8, kLengthType);
  const std::string records = BytesField(8, "a") + BytesField(8, "") + BytesField(8, "b\0c"s);
  const std::string long_record = BytesField(8, std::string(128, 'x'));
  for (const std::string& next : {VarintField(7, 1), long_record, BytesField(8, "d"), "\x42"s}) {
    ForEachSlicing(records + next, [&](const Bytes& bytes) {
      Reader reader(bytes);
      std::string read;
      reader.ReadShortRecords(kTag, [&](const uint8_t* data, size_t size) {
        read += BytesField(8, {reinterpret_cast<const char*>(data), size});
      });
      EXPECT_EQ(read + reader.Rest().ToString(), records + next);
      if (bytes.contiguous()) {
        EXPECT_EQ(read, records);
      }
    });
  }
}

TEST(ReaderTest, NestedReaderEndsWithItsBytesAndKnowsItsOffset) {
  ForEachSlicing("\x0a\x02\x08\x07\x10\x09", [](const Bytes& bytes) {
    Reader reader(bytes);
    Reader nested;
    uint32_t tag;
    uint64_t value;
    ASSERT_TRUE(reader.ReadTag(&tag) && reader.ReadNested(&nested));
    EXPECT_EQ(nested.offset(), 2u);
    ASSERT_TRUE(nested.ReadTag(&tag) && nested.ReadVarint(&value));
    EXPECT_EQ(value, 7u);
    EXPECT_TRUE(nested.done());
    EXPECT_EQ(reader.Rest().ToString(), "\x10\x09");
  });
}

// Expects that reading the fields of `text` fails with `error`, however it is sliced.
void ExpectError(const std::string& text, const std::string& error) {
  ForEachSlicing(text, [&](const Bytes& bytes) {
    Reader reader(bytes);
    uint32_t tag;
    bool ok = true;
    while (ok && !reader.done()) ok = reader.ReadTag(&tag) && reader.SkipValue(tag, kMaxDepth);
    EXPECT_FALSE(ok);
    EXPECT_EQ(reader.error(), error);
  });
}

TEST(ReaderTest, SkipsEveryWireType) {
  const std::string text = VarintField(1, 300) + Tag(2, kFixed64Type) + "12345678" +
                           BytesField(3, "bytes") + Tag(4, kStartGroupType) + VarintField(5, 1) +
                           Tag(6, kStartGroupType) + Tag(6, kEndGroupType) + Tag(4, kEndGroupType) +
                           Tag(7, kFixed32Type) + "1234";
  ForEachSlicing(text, [](const Bytes& bytes) {
    Reader reader(bytes);
    uint32_t tag;
    while (!reader.done()) {
      ASSERT_TRUE(reader.ReadTag(&tag) && reader.SkipValue(tag, kMaxDepth)) << reader.error();
    }
  });
}

TEST(ReaderTest, RefusesWhatGoesPastTheEnd) {
  ExpectError("\x08", "varint goes past the end");
  ExpectError("\x08\x80", "varint goes past the end");
  ExpectError(
      "\x09"
      "1234567",
      "value goes past the end");
  ExpectError(
      "\x0d"
      "123",
      "value goes past the end");
  ExpectError(
      "\x0a\x04"
      "abc",
      "length goes past the end");
  ExpectError("\x80", "varint goes past the end");
}

TEST(ReaderTest, RefusesMalformedTags) {
  ExpectError("\0"s, "field number 0");
  ExpectError("\x07"s, "field number 0");
  ExpectError("\x80\x00"s, "field number 0");
  ExpectError("\x0e\x01", "unknown wire type");
  ExpectError("\x0f\x01", "unknown wire type");
  ExpectError("\x88\x80\x80\x80\x80\x00\x01"s, "tag longer than 5 bytes");
}

TEST(ReaderTest, ReadsTagsLongerThanNeeded) {
  const std::string text = "\x88\x80\x80\x80\x00"s;
  Reader reader{Bytes(text)};
  uint32_t tag;
  ASSERT_TRUE(reader.ReadTag(&tag));
  EXPECT_EQ(tag, MakeTag(1, kVarintType));
}

TEST(ReaderTest, RefusesMalformedNumbers) {
  ExpectError("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s, "varint longer than 10 bytes");
  ExpectError("\x0a\x80\x80\x80\x80\x80\x00"s, "length longer than 5 bytes");
  ExpectError("\x0a\xff\xff\xff\xff\x0f", "length over 2 GB");
}

TEST(ReaderTest, RefusesGroupsThatDoNotMatch) {
  ExpectError("\x0c", "end of a group that did not start");
  ExpectError("\x0b\x08\x01", "group without an end");
  ExpectError("\x0b\x14", "end of a group that did not start");
}

TEST(ReaderTest, RefusesGroupsNestedTooDeep) {
  std::string deep, deeper;
  for (int i = 0; i < kMaxDepth; ++i) deep = "\x0b" + deep + "\x0c";
  deeper = "\x0b" + deep + "\x0c";
  Reader reader{Bytes(deep)};
  uint32_t tag;
  EXPECT_TRUE(reader.ReadTag(&tag) && reader.SkipValue(tag, kMaxDepth));
  ExpectError(deeper, "nested too deep");
}

TEST(CountVarintsTest, CountsAcrossSlices) {
  ForEachSlicing(Varints({1, 300, ~uint64_t{0}, 0, 0, 0, 0, 0, 0, 0, 0}), [](const Bytes& bytes) {
    int64_t count = 0;
    EXPECT_TRUE(CountVarints(bytes, &count));
    EXPECT_EQ(count, 11);
  });
  int64_t count;
  EXPECT_FALSE(CountVarints(Bytes("\x01\x80"), &count));
}

}  // namespace
}  // namespace colcast
