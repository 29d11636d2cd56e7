#include "server/http1/gzip.h"

#include <gtest/gtest.h>

namespace colcast::http {
namespace {

TEST(Gzip, GoesThereAndBack) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("\0\xFF", 2), std::string(1 << 20, 'a')}) {
    std::string back;
    ASSERT_TRUE(Gunzip(Gzip(text), text.size(), &back).ok());
    EXPECT_EQ(back, text);
  }
}

TEST(Gzip, SeveralMembersAreOneText) {
  std::string text;
  ASSERT_TRUE(Gunzip(Gzip("to") + Gzip("gether"), 100, &text).ok());
  EXPECT_EQ(text, "together");
}

TEST(Gzip, ABombIsStoppedAtTheLimit) {
  const std::string bomb = Gzip(std::string(10 << 20, '0'));
  std::string text;
  const Status status = Gunzip(bomb, 1 << 20, &text);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_NE(status.message.find("over 1048576 bytes"), std::string::npos) << status.message;
  EXPECT_LE(text.capacity(), size_t{2} << 20);
}

TEST(Gzip, WhatIsNotGzipIsRefused) {
  const std::string good = Gzip("hello");
  std::string text;
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() - 1),
                                 good.substr(0, 5), good + "x"}) {
    const Status status = Gunzip(bad, 100, &text);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << bad.size();
    EXPECT_NE(status.message.find("not valid gzip"), std::string::npos) << status.message;
  }
}

TEST(Gzip, IsSentOnlyToThoseWhoAsk) {
  for (const char* yes : {"gzip", "deflate, gzip", "gzip;q=0.5", "br;q=1.0, *;q=0.1", " gzip "}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "gzip; q=0.000, br", "xgzip", ",,;"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

}  // namespace
}  // namespace colcast::http
