#include "server/http2/grpc_headers.h"

#include <gtest/gtest.h>

#include <chrono>

#include "server/base/text.h"

namespace colcast::http2 {
namespace {

using std::chrono::nanoseconds;

TEST(ParseTimeoutTest, ANumberAndAUnit) {
  EXPECT_EQ(ParseTimeout("1H"), std::chrono::hours(1));
  EXPECT_EQ(ParseTimeout("2M"), std::chrono::minutes(2));
  EXPECT_EQ(ParseTimeout("3S"), std::chrono::seconds(3));
  EXPECT_EQ(ParseTimeout("100m"), std::chrono::milliseconds(100));
  EXPECT_EQ(ParseTimeout("99999999u"), std::chrono::microseconds(99'999'999));
  EXPECT_EQ(ParseTimeout("0n"), nanoseconds(0));
}

TEST(ParseTimeoutTest, WhatDoesNotFitIsAYear) {
  EXPECT_EQ(ParseTimeout("99999999H"), std::chrono::hours(24 * 365));
}

TEST(ParseTimeoutTest, AnythingElseIsNone) {
  for (const char* text : {"", "m", "1", "1s", "-1m", " 1m", "1.5S", "123456789m", "1mm", "m1"}) {
    EXPECT_FALSE(ParseTimeout(text)) << text;
  }
}

TEST(FormatTimeoutTest, IsReadAsTheSameOrALittleMore) {
  EXPECT_EQ(FormatTimeout(std::chrono::milliseconds(100)), "100m");
  EXPECT_EQ(FormatTimeout(nanoseconds(1)), "1m");
  EXPECT_EQ(FormatTimeout(nanoseconds(-1)), "0m");
  EXPECT_EQ(FormatTimeout(std::chrono::hours(27)), "97200000m");
  EXPECT_EQ(FormatTimeout(std::chrono::hours(28)), "100800S");
  EXPECT_EQ(FormatTimeout(nanoseconds::max()), "99999999S");
}

TEST(IsGrpcTest, ItsOwnTypesOnly) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc;x=y"}) {
    EXPECT_TRUE(IsGrpc(type)) << type;
  }
  for (const char* type : {"application/grpcx", "application/grpc-web", "application/json", ""}) {
    EXPECT_FALSE(IsGrpc(type)) << type;
  }
}

TEST(PercentEncodeTest, PrintableAsciiStays) {
  EXPECT_EQ(PercentEncode(R"(input "a b" ~ 3!)"), R"(input "a b" ~ 3!)");
  EXPECT_EQ(PercentEncode("100%\n\x7f"), "100%25%0A%7F");
  EXPECT_EQ(PercentEncode("\xc3\xa9"), "%C3%A9");
  EXPECT_EQ(PercentEncode(""), "");
}

TEST(PercentDecodeTest, WhatWasEncodedComesBack) {
  for (const char* text : {"", "100%", "%", "%%41", "a b\n", "\xc3\xa9"}) {
    EXPECT_EQ(PercentDecode(PercentEncode(text)), text);
  }
}

}  // namespace
}  // namespace colcast::http2
