#include "server/engine/program/gathered_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/tensor_testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

TEST(GatheredRowsTest, AllThatARunGathersIsBounded) {
  GatheredRows gathered(/*max_bytes=*/32);
  Tensor feed = AsTensor<float>({1, 2}, {2});
  ASSERT_TRUE(gathered.Gather({1, 1, 0, 1}, &feed).ok());  // 16 bytes
  EXPECT_EQ(feed.flat<float>()(2), 1);
  ASSERT_TRUE(gathered.Gather({0, 1, 2, 3}, &feed).ok());
  const absl::Status status = gathered.Gather({0}, &feed);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("max_expanded_bytes is 32"));
  EXPECT_EQ(feed.NumElements(), 4);
}

}  // namespace
}  // namespace colcast::engine
