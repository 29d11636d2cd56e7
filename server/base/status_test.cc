#include "server/base/status.h"

#include <gtest/gtest.h>

namespace colcast {
namespace {

TEST(StatusTest, CodesHaveGrpcsNumbersAndNames) {
  EXPECT_EQ(StatusName(static_cast<StatusCode>(0)), "OK");
  EXPECT_EQ(StatusName(static_cast<StatusCode>(3)), "INVALID_ARGUMENT");
  EXPECT_EQ(StatusName(static_cast<StatusCode>(8)), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(StatusName(static_cast<StatusCode>(14)), "UNAVAILABLE");
  EXPECT_EQ(StatusName(static_cast<StatusCode>(16)), "UNAUTHENTICATED");
}

TEST(StatusTest, CodesThatGrpcLacksAreUnknown) {
  EXPECT_EQ(StatusName(static_cast<StatusCode>(17)), "UNKNOWN");
  EXPECT_EQ(StatusName(static_cast<StatusCode>(-1)), "UNKNOWN");
}

}  // namespace
}  // namespace colcast
