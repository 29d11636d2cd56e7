#include "server/http1/gzip.h"

#include <gtest/gtest.h>

#include "server/wire/inflater_testing.h"

namespace colcast::http {
namespace {

TEST(Gzip, GoesThereAndBack) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("\0\xFF", 2), std::string(1 << 20, 'a')}) {
    std::string back;
    ASSERT_TRUE(InflateAll(Gzip(text), Inflater::Format::kGzip, text.size(), &back).ok());
    EXPECT_EQ(back, text);
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
