#include "server/http2/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/wire/inflater_testing.h"

namespace colcast::http2 {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text) { return Deflated(text, 15 + 16); }

// A compressed message in slices of this many bytes.
Message Compressed(const std::string& bytes, Compression compression,
                   size_t slice_bytes = 1 << 20) {
  const auto owner = std::make_shared<std::string>(bytes);
  Message message;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    const size_t size = std::min(slice_bytes, bytes.size() - at);
    message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()) + at, size);
  }
  message.set_compression(compression);
  return message;
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(InflateTest, WhatCameAsItIsStays) {
  Message message = Compressed("hello", Compression::kNone);
  EXPECT_TRUE(Inflate(/*max_bytes=*/0, &message).ok());
  EXPECT_EQ(message.bytes().ToString(), "hello");
}

TEST(InflateTest, WhatCameCompressedIsReadUpToTheLimit) {
  for (const std::string& text : {std::string("h"), LongText()}) {
    for (const size_t slice_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (const auto compression : {Compression::kGzip, Compression::kDeflate}) {
        const bool gzip = compression == Compression::kGzip;
        Message message =
            Compressed(gzip ? Gzip(text) : Deflated(text, 15), compression, slice_bytes);
        const Status refused = Inflate(text.size() - 1, &message);
        EXPECT_EQ(refused.code, StatusCode::kResourceExhausted);
        EXPECT_THAT(refused.message, HasSubstr("to more than " + std::to_string(text.size() - 1)));
        EXPECT_EQ(message.compression(), compression);
        EXPECT_TRUE(Inflate(text.size(), &message).ok());
        EXPECT_EQ(message.compression(), Compression::kNone);
        EXPECT_TRUE(message.bytes().ToString() == text);
      }
    }
  }
}

TEST(InflateTest, WhatDoesNotInflateIsAnError) {
  const std::string cut = Gzip(LongText()).substr(0, 5000);
  for (const std::string& bytes : {std::string(), std::string("no gzip"), cut, Gzip("hello") + "x",
                                   Gzip("hello") + Gzip("hello")}) {
    Message message = Compressed(bytes, Compression::kGzip);
    const Status status = Inflate(1 << 30, &message);
    EXPECT_EQ(status.code, StatusCode::kInternal);
    EXPECT_THAT(status.message, HasSubstr("not valid gzip"));
  }
}

TEST(InflateTest, BlocksAreAskedForAndARefusalEndsIt) {
  Message message = Compressed(Gzip(std::string(8 << 20, 'x')), Compression::kGzip);
  size_t made = 0, most = 0;
  const Status status = Inflate(1 << 30, &message, [&](size_t bytes, auto* block) {
    most = std::max(most, bytes);
    if (made + bytes > 3 << 20) return ResourceExhausted("no room");
    made += bytes;
    return MakePlainBlock(bytes, block);
  });
  EXPECT_EQ(status.message, "no room");
  EXPECT_LE(most, (size_t{1} << 20) + 1);
  EXPECT_EQ(message.compression(), Compression::kGzip);
}

}  // namespace
}  // namespace colcast::http2
