#include "server/http2/grpc_headers.h"

#include <gtest/gtest.h>

#include <chrono>

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

TEST(PercentEncodeTest, PrintableAsciiStays) {
  EXPECT_EQ(PercentEncode(R"(input "a b" ~ 3!)"), R"(input "a b" ~ 3!)");
  EXPECT_EQ(PercentEncode("100%\n\x7f"), "100%25%0A%7F");
  EXPECT_EQ(PercentEncode("\xc3\xa9"), "%C3%A9");
  EXPECT_EQ(PercentEncode(""), "");
}

}  // namespace
}  // namespace colcast::http2
