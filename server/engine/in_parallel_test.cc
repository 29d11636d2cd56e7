#include "server/engine/in_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace colcast::engine {
namespace {

TEST(InParallelTest, EachJobIsDoneOnce) {
  std::vector<int> done(1000);
  InParallel(done.size(), [&](size_t i) { ++done[i]; });
  EXPECT_THAT(done, ::testing::Each(1));
}

TEST(InParallelTest, AnExceptionOnAnyThreadReachesTheCaller) {
  for (size_t wrong = 0; wrong < 100; ++wrong) {
    const auto job = [wrong](size_t i) {
      if (i == wrong) throw std::runtime_error("no such row");
    };
    EXPECT_THROW(InParallel(100, job), std::runtime_error);
  }
}

}  // namespace
}  // namespace colcast::engine
