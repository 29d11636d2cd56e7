#include "server/rpc/http2_limits.h"

#include <gtest/gtest.h>

namespace colcast::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const int a = 0, b = 0;  // connections, by their addresses

TEST(HeaderBlocksTest, CountsABlockThatIsNotComplete) {
  HeaderBlocks blocks;
  blocks.BeginFrame(&a, /*last=*/false);
  EXPECT_TRUE(blocks.Add(&a, 600, 1000));
  blocks.BeginFrame(&a, false);
  EXPECT_TRUE(blocks.Add(&a, 400, 1000));
  EXPECT_FALSE(blocks.Add(&a, 1, 1000));
}

TEST(HeaderBlocksTest, EachBlockAndEachConnectionCountsAlone) {
  HeaderBlocks blocks;
  blocks.BeginFrame(&a, false);
  EXPECT_TRUE(blocks.Add(&a, 1000, 1000));
  blocks.BeginFrame(&b, false);
  EXPECT_TRUE(blocks.Add(&b, 1000, 1000));
  blocks.BeginFrame(&a, /*last=*/true);
  EXPECT_TRUE(blocks.Add(&a, 1000, 1000));
  blocks.BeginFrame(&a, false);
  EXPECT_TRUE(blocks.Add(&a, 1000, 1000));
}

TEST(HeaderBlocksTest, ForgetsWhatEnded) {
  HeaderBlocks blocks;
  blocks.BeginFrame(&a, false);
  blocks.BeginFrame(&b, false);
  EXPECT_FALSE(blocks.empty());
  blocks.BeginFrame(&a, true);
  blocks.Forget(&b);
  EXPECT_TRUE(blocks.empty());
}

TEST(RateLimitTest, AllowsAsManyAtOnceAndThenPerSecond) {
  RateLimit limit;
  RateLimit::Clock::time_point now{};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit.Allow(&a, 10, now)) << i;
  EXPECT_FALSE(limit.Allow(&a, 10, now));
  EXPECT_TRUE(limit.Allow(&b, 10, now));
  now += milliseconds(250);
  EXPECT_TRUE(limit.Allow(&a, 10, now));
  EXPECT_FALSE(limit.Allow(&a, 10, now));
  now += seconds(10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit.Allow(&a, 10, now)) << i;
}

TEST(RateLimitTest, DropsConnectionsWithoutRecentEvents) {
  RateLimit limit;
  const char connections[1000] = {};
  RateLimit::Clock::time_point now{};
  for (const char& connection : connections) {
    now += seconds(1);
    limit.Allow(&connection, 10, now);
  }
  EXPECT_LE(limit.size(), 64u);
}

}  // namespace
}  // namespace colcast::rpc
