#include "server/wire/varint.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace colcast {
namespace {

using std::string_literals::operator""s;

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

TEST(VarintTest, ReadsWhateverFollows) {
  for (const Case& c : kCases) {
    for (const char* tail : {"\0\0\0\0\0\0\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
      const std::string padded = c.bytes + std::string(tail, 10);
      uint64_t value = 0;
      EXPECT_EQ(ReadVarintUnchecked(AsBytes(padded), &value), AsBytes(padded) + c.bytes.size());
      EXPECT_EQ(value, c.value);
    }
  }
}

TEST(VarintTest, ReadsFormsLongerThanNeeded) {
  const std::string bytes = "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"s;
  uint64_t value = 0;
  EXPECT_EQ(ReadVarintUnchecked(AsBytes(bytes), &value), AsBytes(bytes) + 10);
  EXPECT_EQ(value, 5u);
}

TEST(VarintTest, DropsBitsBeyondThe64th) {
  const std::string bytes = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  uint64_t value = 0;
  EXPECT_EQ(ReadVarintUnchecked(AsBytes(bytes), &value), AsBytes(bytes) + 10);
  EXPECT_EQ(value, ~uint64_t{0});
}

TEST(VarintTest, ElevenBytesAreNoVarint) {
  const std::string bytes = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s;
  uint64_t value = 0;
  EXPECT_EQ(ReadVarintUnchecked(AsBytes(bytes), &value), nullptr);
}

// The counter's answer for `text`, fed `piece` bytes at a time; -1 if a varint is too long, -2 if
// the last one is cut off.
int64_t Count(std::string_view text, size_t piece) {
  VarintCounter counter;
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!counter.Add(data + at, std::min(piece, text.size() - at))) return -1;
  }
  return counter.complete() ? counter.count() : -2;
}

TEST(VarintCounterTest, CountsHoweverThePiecesLie) {
  std::string all;
  for (const Case& c : kCases) all += c.bytes;
  for (size_t piece = 1; piece <= all.size(); ++piece) {
    EXPECT_EQ(Count(all, piece), std::size(kCases)) << "in pieces of " << piece;
  }
}

TEST(VarintCounterTest, FindsTheVarintThatIsCutOff) {
  for (size_t piece = 1; piece <= 12; ++piece) {
    EXPECT_EQ(Count("\x01\x01\x01\x01\x01\x01\x01\x01\x01\x80", piece), -2);
  }
}

TEST(VarintCounterTest, FindsTheVarintThatIsTooLongWhereverItBegins) {
  for (size_t before = 0; before <= 16; ++before) {
    const std::string ten = std::string(before, '\x01') + std::string(9, '\x80') + '\x01';
    const std::string eleven = std::string(before, '\x01') + std::string(10, '\x80') + '\x01';
    for (size_t piece = 1; piece <= eleven.size(); ++piece) {
      EXPECT_EQ(Count(ten, piece), static_cast<int64_t>(before + 1));
      EXPECT_EQ(Count(eleven, piece), -1);
    }
  }
}

}  // namespace
}  // namespace colcast
