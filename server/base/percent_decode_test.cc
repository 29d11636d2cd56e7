#include "server/base/percent_decode.h"

#include <gtest/gtest.h>

namespace colcast {
namespace {

TEST(PercentDecodeTest, APercentSignThatNoDigitsFollowStays) {
  EXPECT_EQ(PercentDecode("%4"), "%4");
  EXPECT_EQ(PercentDecode("%"), "%");
  EXPECT_EQ(PercentDecode("%zz%e9"), "%zz\xe9");
}

}  // namespace
}  // namespace colcast
