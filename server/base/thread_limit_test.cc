#include "server/base/thread_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace colcast {
namespace {

TEST(ThreadLimitTest, SaysHowManyThreadsCanBeMade) {
  EXPECT_TRUE(CheckThreadLimit(20).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // A stack of its own takes more of the address space than is left.
  const rlimit none{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
  const Status status = CheckThreadLimit(20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, testing::AllOf(testing::HasSubstr("about 20 threads"),
                                             testing::HasSubstr("ulimit -v")));
  EXPECT_TRUE(CheckThreadLimit(20).ok());
}

}  // namespace
}  // namespace colcast
