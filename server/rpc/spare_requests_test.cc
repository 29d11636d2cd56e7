#include "server/rpc/spare_requests.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace colcast::rpc {
namespace {

TEST(SpareRequestsTest, WhatIsGivenBackIsUsedAgainEmpty) {
  SpareRequests spares;
  std::unique_ptr<SpareRequests::Spare> spare = spares.Take(100);
  spare->request.AddColumn("age");
  const SpareRequests::Spare* const first = spare.get();
  spares.GiveBack(std::move(spare));
  spare = spares.Take(50);
  EXPECT_EQ(spare.get(), first);
  EXPECT_EQ(spare->request.column_count(), 0);
  EXPECT_EQ(spare->most_bytes, 100);
}

TEST(SpareRequestsTest, WhatHeldTooMuchIsNotKept) {
  SpareRequests spares;
  std::unique_ptr<SpareRequests::Spare> large = spares.Take(17 << 20);
  spares.GiveBack(std::move(large));
  EXPECT_EQ(spares.Take(1)->most_bytes, 1);
}

}  // namespace
}  // namespace colcast::rpc
