#include "server/base/stop_flag.h"

#include <gtest/gtest.h>

#include <thread>

namespace colcast {
namespace {

TEST(StopFlagTest, WhoWaitsIsToldAtOnce) {
  StopFlag stop;
  bool was_set = false;
  std::thread waits([&] { was_set = stop.WaitFor(std::chrono::hours(1)); });
  stop.Set();
  waits.join();
  EXPECT_TRUE(was_set);
  EXPECT_TRUE(stop.IsSet());
  EXPECT_TRUE(stop.WaitFor(std::chrono::hours(1)));
}

TEST(StopFlagTest, TheTimeComesWithoutIt) {
  StopFlag stop;
  EXPECT_FALSE(stop.WaitFor(std::chrono::milliseconds(1)));
  EXPECT_FALSE(stop.IsSet());
}

}  // namespace
}  // namespace colcast
