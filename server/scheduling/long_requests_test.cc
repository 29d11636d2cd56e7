#include "server/scheduling/long_requests.h"

#include <gtest/gtest.h>

#include <chrono>

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LongRequestsTest : public testing::Test {
 protected:
  LongRequests Make(int num_workers, int nice) {
    return LongRequests({num_workers, 10, nice, [this] { return now_; }});
  }
  ShortRequests MakeShort(bool long_ones_may_give_way) {
    return {milliseconds(2), long_ones_may_give_way, [this] { return now_; }};
  }

  Clock::time_point now_ = Clock::now();
};

TEST_F(LongRequestsTest, ExtraThreadsExistWithNiceOrASingleWorker) {
  EXPECT_FALSE(Make(2, 0).has_threads());
  EXPECT_TRUE(Make(2, 5).has_threads());
  EXPECT_TRUE(Make(1, 0).has_threads());
}

TEST_F(LongRequestsTest, TheLastWorkerStaysFreeForTenTimesTheRunsLength) {
  ShortRequests requests = MakeShort(false);
  EXPECT_TRUE(requests.MayTakeLastWorker(milliseconds(100)));
  requests.Note();
  now_ += milliseconds(900);
  EXPECT_FALSE(requests.MayTakeLastWorker(milliseconds(100)));
  EXPECT_TRUE(requests.MayTakeLastWorker(milliseconds(80)));
  EXPECT_TRUE(requests.MayTakeLastWorker(milliseconds(0)));
}

TEST_F(LongRequestsTest, SlicesAreUnlimitedUnlessShortRequestsRun) {
  ShortRequests requests = MakeShort(false);
  EXPECT_EQ(requests.LongestSlice(seconds(1)), Clock::duration::max());
  requests.Note();
  EXPECT_EQ(requests.LongestSlice(seconds(1)), milliseconds(2));
  now_ += milliseconds(1001);
  EXPECT_EQ(requests.LongestSlice(seconds(1)), Clock::duration::max());
}

TEST_F(LongRequestsTest, ASliceThatGivesWayMayTakeLonger) {
  ShortRequests requests = MakeShort(true);
  requests.Note();
  EXPECT_EQ(requests.LongestSlice(seconds(1)), milliseconds(8));
  EXPECT_EQ(requests.LongestSlice(milliseconds(1)), milliseconds(2));
}

}  // namespace
}  // namespace colcast::scheduling
