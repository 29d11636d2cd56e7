#include "server/wire/inflater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/wire/inflater_testing.h"

namespace colcast {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text) { return Deflated(text, MAX_WBITS + 16); }
std::string Zlib(const std::string& text) { return Deflated(text, MAX_WBITS); }

std::string LongText() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(Inflater, CompressedBytesAreReadInAnySlices) {
  for (const std::string& text : {std::string(), std::string("h"), LongText()}) {
    for (const size_t slice_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (const std::string& compressed : {Gzip(text), Zlib(text)}) {
        std::string read;
        EXPECT_TRUE(InflateAll(compressed, text.size(), &read, slice_bytes).ok());
        EXPECT_TRUE(read == text) << text.size();
      }
    }
  }
}

TEST(Inflater, OutputBeyondTheLimitIsRefused) {
  std::string text;
  const Status status = InflateAll(Gzip(std::string(10 << 20, '0')), 10'000, &text);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("to more than 10000"));
  EXPECT_LE(text.size(), 10'000u);
}

TEST(Inflater, InvalidCompressedBytesAreRefused) {
  const std::string good = Gzip("hello");
  std::string text;
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() - 1),
                                 good.substr(0, 5), good + "x", good + good}) {
    const Status status = InflateAll(bad, 100, &text);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << bad.size();
    EXPECT_THAT(status.message, HasSubstr("not valid gzip"));
  }
}

}  // namespace
}  // namespace colcast
