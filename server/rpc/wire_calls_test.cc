#include "server/rpc/wire_calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace colcast::rpc {
namespace {

TEST(SpareRequestsTest, AReturnedRequestIsReusedEmpty) {
  SpareRequests spares;
  std::unique_ptr<SpareRequests::Spare> spare = spares.Take(100);
  spare->request.AddColumn("age");
  const SpareRequests::Spare* const first = spare.get();
  spares.GiveBack(std::move(spare));
  spare = spares.Take(50);
  EXPECT_EQ(spare.get(), first);
  EXPECT_EQ(spare->request.columns().size(), 0);
  EXPECT_EQ(spare->most_bytes, 100);
}

TEST(SpareRequestsTest, ALargeRequestIsNotKept) {
  SpareRequests spares;
  std::unique_ptr<SpareRequests::Spare> large = spares.Take(17 << 20);
  spares.GiveBack(std::move(large));
  EXPECT_EQ(spares.Take(1)->most_bytes, 1);
}

TEST(SpareRequestsTest, ASmallRequestIsKeptHoweverLargeItsMessage) {
  SpareRequests spares;
  constexpr size_t kLarge = 2 << 20;
  std::unique_ptr<SpareRequests::Spare> spare = spares.Take(kLarge);
  const SpareRequests::Spare* const first = spare.get();
  spare->request.AddColumn("age");
  EXPECT_TRUE(spare->IsLight());
  spares.GiveBack(std::move(spare));

  spare = spares.Take(kLarge);
  EXPECT_EQ(spare.get(), first);
  std::vector<Bytes>& strings = spare->request.AddColumn("words")->values.strings;
  strings.resize(SpareRequests::kMaxMemoryBytes / sizeof(Bytes) + 1);
  EXPECT_FALSE(spare->IsLight());
}

}  // namespace
}  // namespace colcast::rpc
