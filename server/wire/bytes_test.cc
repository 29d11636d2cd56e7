#include "server/wire/bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/testing.h"

namespace colcast {
namespace {

TEST(BytesTest, IsEmptyByDefaultAndFromEmptySlices) {
  EXPECT_TRUE(Bytes().empty());
  EXPECT_EQ(Bytes().ToString(), "");
  EXPECT_TRUE(SlicedBytes("", {0, 0, 0}).bytes().empty());
}

TEST(BytesTest, HoldsSlicesInOrder) {
  ForEachSlicing("columns", [](const Bytes& bytes) {
    EXPECT_EQ(bytes.size(), 7u);
    EXPECT_EQ(bytes.ToString(), "columns");
  });
}

TEST(BytesTest, IsContiguousInOneSlice) {
  EXPECT_TRUE(SlicedBytes("abc", {0, 0}).bytes().contiguous());
  EXPECT_TRUE(SlicedBytes("abc", {3}).bytes().contiguous());
  EXPECT_FALSE(SlicedBytes("abc", {1}).bytes().contiguous());
}

TEST(BytesTest, SubReturnsAnyRange) {
  const std::string text = "slices";
  ForEachSlicing(text, [&](const Bytes& bytes) {
    for (size_t offset = 0; offset <= text.size(); ++offset) {
      for (size_t size = 0; offset + size <= text.size(); ++size) {
        EXPECT_EQ(bytes.Sub(offset, size).ToString(), text.substr(offset, size));
      }
    }
  });
}

TEST(BytesTest, SubWithinOneSliceIsContiguous) {
  const SlicedBytes sliced("abcdef", {2, 4});
  EXPECT_TRUE(sliced.bytes().Sub(2, 2).contiguous());
  EXPECT_EQ(sliced.bytes().Sub(2, 2).view(), "cd");
  EXPECT_FALSE(sliced.bytes().Sub(1, 2).contiguous());
}

TEST(BytesTest, TextIsCheckedAcrossSlices) {
  ForEachSlicing("Z\xc3\xbcrich \xf0\x9f\x8e\xac",
                 [](const Bytes& bytes) { EXPECT_TRUE(IsValidUtf8(bytes)); });
  ForEachSlicing("\xe2\x82 and more", [](const Bytes& bytes) { EXPECT_FALSE(IsValidUtf8(bytes)); });
}

TEST(BytesTest, PiecesAreContiguousAndNotEmpty) {
  const SlicedBytes sliced("abcdef", {2, 2, 4});
  std::string joined;
  sliced.bytes().ForEachPiece([&](const uint8_t* data, size_t size) {
    joined += "|" + std::string(reinterpret_cast<const char*>(data), size);
  });
  EXPECT_EQ(joined, "|ab|cd|ef");
}

}  // namespace
}  // namespace colcast
