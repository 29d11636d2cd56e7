#include "server/wire/inflater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/wire/inflater_testing.h"

namespace colcast {
namespace {

using testing::HasSubstr;
using Format = CompressedFormat;

std::string Gzip(const std::string& text) { return Deflated(text, MAX_WBITS + 16); }
std::string Zlib(const std::string& text) { return Deflated(text, MAX_WBITS); }

std::string LongText() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(Inflater, SlicesDoNotMatter) {
  for (const std::string& text : {std::string(), std::string("h"), LongText()}) {
    for (const size_t slice_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      const auto expect = [&](const std::string& compressed, Format format) {
        std::string read;
        EXPECT_TRUE(InflateAll(compressed, format, text.size(), &read, slice_bytes).ok());
        EXPECT_TRUE(read == text) << text.size();
      };
      expect(Gzip(text), Format::kGzip);
      expect(Zlib(text), Format::kZlib);
      expect(Gzip(text), Format::kGzipBody);
      expect(Zlib(text), Format::kGzipBody);
    }
  }
}

TEST(Inflater, ABodyMayHaveSeveralMembersAndAMessageHasOne) {
  const std::string two = Gzip("to") + Gzip("gether");
  std::string text;
  EXPECT_TRUE(InflateAll(two, Format::kGzipBody, 100, &text).ok());
  EXPECT_EQ(text, "together");
  EXPECT_THAT(InflateAll(two, Format::kGzip, 100, &text).message,
              HasSubstr("bytes follow its end"));
}

TEST(Inflater, ABombIsRefusedAtTheLimit) {
  std::string text;
  const Status status = InflateAll(Gzip(std::string(10 << 20, '0')), Format::kGzip, 10'000, &text);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("to more than 10000"));
  EXPECT_LE(text.size(), 10'000u);
}

TEST(Inflater, BytesThatDoNotInflateAreAnError) {
  const std::string good = Gzip("hello");
  std::string text;
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() - 1),
                                 good.substr(0, 5), good + "x"}) {
    for (const Format format : {Format::kGzip, Format::kGzipBody}) {
      const Status status = InflateAll(bad, format, 100, &text);
      EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << bad.size();
      EXPECT_THAT(status.message, HasSubstr("not valid gzip"));
    }
  }
}

}  // namespace
}  // namespace colcast
