#include "server/wire/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

TEST(BytesTest, SubReturnsAnyRangeOfAnySlices) {
  EXPECT_TRUE(Bytes().empty());
  EXPECT_EQ(Bytes().ToString(), "");
  EXPECT_TRUE(SlicedBytes("", {0, 0, 0}).bytes().empty());
  const std::string text = "slices";
  ForEachSlicing(text, [&](const Bytes& bytes) {
    EXPECT_EQ(bytes.size(), text.size());
    EXPECT_EQ(bytes.ToString(), text);
    for (size_t offset = 0; offset <= text.size(); ++offset) {
      for (size_t size = 0; offset + size <= text.size(); ++size) {
        EXPECT_EQ(bytes.Sub(offset, size).ToString(), text.substr(offset, size));
      }
    }
  });
}

TEST(BytesTest, OneSliceIsContiguous) {
  EXPECT_TRUE(SlicedBytes("abc", {0, 0}).bytes().contiguous());
  EXPECT_TRUE(SlicedBytes("abc", {3}).bytes().contiguous());
  EXPECT_FALSE(SlicedBytes("abc", {1}).bytes().contiguous());
  const SlicedBytes sliced("abcdef", {2, 2, 4});
  EXPECT_TRUE(sliced.bytes().Sub(2, 2).contiguous());
  EXPECT_EQ(sliced.bytes().Sub(2, 2).view(), "cd");
  EXPECT_FALSE(sliced.bytes().Sub(1, 2).contiguous());
  std::string pieces;
  sliced.bytes().ForEachPiece([&](const uint8_t* data, size_t size) {
    pieces += "|" + std::string(reinterpret_cast<const char*>(data), size);
  });
  EXPECT_EQ(pieces, "|ab|cd|ef");
}

TEST(BytesTest, TextIsCheckedAcrossSlices) {
  ForEachSlicing("Z\xc3\xbcrich \xf0\x9f\x8e\xac",
                 [](const Bytes& bytes) { EXPECT_TRUE(IsValidUtf8(bytes)); });
  ForEachSlicing("\xe2\x82 and more", [](const Bytes& bytes) { EXPECT_FALSE(IsValidUtf8(bytes)); });
}

struct Case {
  uint64_t value;
  std::string bytes;
};

const Case kCases[] = {
    {0, "\0"s},
    {1, "\x01"},
    {127, "\x7f"},
    {128, "\x80\x01"},
    {300, "\xac\x02"},
    {16384, "\x80\x80\x01"},
    {uint64_t{1} << 32, "\x80\x80\x80\x80\x10"},
    {(uint64_t{1} << 56) - 1, "\xff\xff\xff\xff\xff\xff\xff\x7f"},
    {uint64_t{1} << 56, "\x80\x80\x80\x80\x80\x80\x80\x80\x01"},
    {uint64_t{1} << 63, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"},
    {~uint64_t{0}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
};

const uint8_t* AsBytes(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

TEST(VarintTest, WritesTheShortestForm) {
  for (const Case& c : kCases) {
    uint8_t buffer[kMaxVarintSize];
    EXPECT_EQ(std::string(buffer, WriteVarint(c.value, buffer)), c.bytes);
    EXPECT_EQ(VarintSize(c.value), c.bytes.size());
  }
}

TEST(VarintTest, ReadsAVarintWhateverBytesFollow) {
  for (const Case& c : kCases) {
    for (const char* tail : {"\0\0\0\0\0\0\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
      const std::string padded = c.bytes + std::string(tail, 10);
      uint64_t value = 0;
      EXPECT_EQ(ReadVarintUnchecked(AsBytes(padded), &value), AsBytes(padded) + c.bytes.size());
      EXPECT_EQ(value, c.value);
    }
  }
}

TEST(VarintTest, ReadsAtMostTenBytesAndDropsBitsBeyondThe64th) {
  const auto read = [](const std::string& bytes, uint64_t* value) {
    const uint8_t* const end = ReadVarintUnchecked(AsBytes(bytes), value);
    return end == nullptr ? 0 : end - AsBytes(bytes);
  };
  uint64_t value = 0;
  EXPECT_EQ(read("\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"s, &value), 10);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(read(std::string(9, '\xff') + "\x7f", &value), 10);
  EXPECT_EQ(value, ~uint64_t{0});
  EXPECT_EQ(read(std::string(10, '\x80') + '\0', &value), 0);
}

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

TEST(ReaderTest, ReadsShortRecordsUpToTheFirstOtherRecord) {
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

TEST(ReaderTest, ANestedReaderEndsWithItsBytesAndKnowsItsOffset) {
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

TEST(ReaderTest, SkipsEveryWireType) {
  const std::string text = VarintField(1, 300) + Tag(2, kFixed64Type) + "12345678" +
                           BytesField(3, "bytes") + Tag(4, kStartGroupType) + VarintField(5, 1) +
                           Tag(6, kStartGroupType) + Tag(6, kEndGroupType) + Tag(4, kEndGroupType) +
                           Tag(7, kFixed32Type) + "1234";
  ForEachSlicing(text, [](const Bytes& bytes) {
    Reader reader(bytes);
    uint32_t tag;
    while (!reader.done()) {
      ASSERT_TRUE(reader.ReadTag(&tag) && reader.SkipValue(tag));
    }
  });
}

TEST(ReaderTest, MalformedFieldsAreRefusedAtTheSameByteHoweverSliced) {
  std::string deep;
  for (int i = 0; i <= kMaxDepth; ++i) deep = "\x0b" + deep + "\x0c";
  const std::pair<std::string, const char*> kCases[] = {
      {"\x08", "varint goes past the end"},
      {"\x08\x80", "varint goes past the end"},
      {"\x09" + std::string(7, '1'), "value goes past the end"},
      {"\x0d" + std::string(3, '1'), "value goes past the end"},
      {"\x0a\x04" + std::string(3, '1'), "length goes past the end"},
      {"\x80", "varint goes past the end"},
      {"\0"s, "field number 0"},
      {"\x07"s, "field number 0"},
      {"\x80\x00"s, "field number 0"},
      {"\x0e\x01", "unknown wire type"},
      {"\x0f\x01", "unknown wire type"},
      {"\x88\x80\x80\x80\x80\x00\x01"s, "tag longer than 5 bytes"},
      {"\x08" + std::string(10, '\x80') + '\0', "varint longer than 10 bytes"},
      {"\x0a\x80\x80\x80\x80\x80\x00"s, "length longer than 5 bytes"},
      {"\x0a\xff\xff\xff\xff\x0f", "length over 2 GB"},
      {"\x0c", "end of a group that did not start"},
      {"\x0b\x08\x01", "group without an end"},
      {"\x0b\x14", "end of a group that did not start"},
      {deep, "nested too deep"},
  };
  for (const auto& [text, error] : kCases) {
    Malformed whole;
    Reader first(Bytes(text), &whole);
    ReadFields(&first, [&](uint32_t tag) { return first.SkipValue(tag); });
    ForEachSlicing(text, [&, error = error](const Bytes& bytes) {
      Malformed malformed;
      Reader reader(bytes, &malformed);
      EXPECT_FALSE(ReadFields(&reader, [&](uint32_t tag) { return reader.SkipValue(tag); }));
      EXPECT_EQ(malformed.reason, error);
      EXPECT_EQ(malformed.offset, whole.offset);
    });
  }
}

TEST(ReaderTest, ReadsOverlongTags) {
  const std::string text = "\x88\x80\x80\x80\x00"s;
  Reader reader{Bytes(text)};
  uint32_t tag;
  ASSERT_TRUE(reader.ReadTag(&tag));
  EXPECT_EQ(tag, MakeTag(1, kVarintType));
}

TEST(ReaderTest, ErrorsNameFieldAndByte) {
  const std::string message = VarintField(3, 1) + BytesField(2, BytesField(4, "\xff"));
  ForEachSlicing(message, [](const Bytes& bytes) {
    Malformed malformed;
    Reader reader(bytes, &malformed);
    EXPECT_FALSE(ReadFields(&reader, [&](uint32_t tag) {
      Reader nested;
      if (tag != MakeTag(2, kLengthType)) return reader.SkipValue(tag);
      return reader.ReadNested(&nested) && ReadFields(&nested, [&](uint32_t) {
               Bytes text;
               return nested.ReadText(&text);
             });
    }));
    const Status status = malformed.ToStatus("Request", bytes.size(), "input \"x\": ");
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message,
              "malformed Request: input \"x\": not valid UTF-8 (field 2.4, byte 6 of 7)");
  });
}

TEST(ReaderTest, GroupsInAMessageNestAsDeeplyAsInProtobuf) {
  for (const int levels : {kMaxDepth - 1, kMaxDepth}) {
    std::string groups;
    for (int i = 0; i < levels; ++i) groups = "\x0b" + groups + "\x0c";
    const std::string message = BytesField(1, groups);
    Reader reader{Bytes(message)};
    Reader nested;
    uint32_t tag;
    ASSERT_TRUE(reader.ReadTag(&tag) && reader.ReadNested(&nested) && nested.ReadTag(&tag));
    EXPECT_EQ(nested.SkipValue(tag), levels < kMaxDepth);
  }
}

// The number of varints in `text`, in slices of `size` bytes; -1 if one is cut off or too long.
int64_t CountVarints(const std::string& text, size_t size) {
  std::vector<size_t> cuts;
  for (size_t cut = size; cut < text.size(); cut += size) cuts.push_back(cut);
  const SlicedBytes sliced(text, cuts);
  int64_t count;
  return CountPacked(kVarintType, sliced.bytes(), &count) ? count : -1;
}

TEST(CountPackedTest, CountsVarintsInAnySlices) {
  std::string all;
  for (const Case& c : kCases) all += c.bytes;
  for (size_t size = 1; size <= all.size(); ++size) {
    EXPECT_EQ(CountVarints(all, size), std::size(kCases)) << "in slices of " << size;
  }
}

TEST(CountPackedTest, FindsTruncatedAndOverlongVarints) {
  for (size_t size = 1; size <= 12; ++size) {
    EXPECT_EQ(CountVarints("\x01\x01\x01\x01\x01\x01\x01\x01\x01\x80", size), -1);
  }
  for (size_t before = 0; before <= 16; ++before) {
    const std::string ten = std::string(before, '\x01') + std::string(9, '\x80') + '\x01';
    const std::string eleven = std::string(before, '\x01') + std::string(10, '\x80') + '\x01';
    for (size_t size = 1; size <= eleven.size(); ++size) {
      EXPECT_EQ(CountVarints(ten, size), static_cast<int64_t>(before + 1));
      EXPECT_EQ(CountVarints(eleven, size), -1);
    }
  }
}

}  // namespace
}  // namespace colcast
