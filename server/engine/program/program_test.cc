#include "server/engine/program/program.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace colcast::engine {
namespace {

TEST(RequestPlanTest, AThreadUsesAReleasedPlanAgain) {
  auto first = RequestPlan::New();
  const RequestPlan* const address = first.get();
  first->batch.domains.resize(2);
  first.reset();
  const auto second = RequestPlan::New();
  EXPECT_EQ(second.get(), address);
  EXPECT_TRUE(second->batch.domains.empty());
}

TEST(RequestPlanTest, AnotherThreadMayReleaseIt) {
  auto plan = RequestPlan::New();
  std::thread([&plan] { plan.reset(); }).join();
  EXPECT_EQ(plan, nullptr);
}

TEST(RequestPlanTest, MoreThanAFewAreNotKept) {
  std::vector<std::unique_ptr<RequestPlan, ReleasePlan>> plans;
  for (int i = 0; i < 100; ++i) plans.push_back(RequestPlan::New());
  plans.clear();  // a sanitizer would report leaks
}

}  // namespace
}  // namespace colcast::engine
