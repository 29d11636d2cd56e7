#include "server/net/hosts.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace colcast::net {
namespace {

TEST(BudgetTest, AHostIsRefusedBeyondItsShare) {
  Budget budget({1000, 100, false});
  Budget::Account host, other;
  EXPECT_TRUE(budget.Take(&host, 60));
  EXPECT_FALSE(budget.Take(&host, 41));
  EXPECT_TRUE(budget.Take(&host, 40));
  EXPECT_TRUE(budget.IsUsedUp(host, Budget::Clock::now()));
  EXPECT_TRUE(budget.Take(&other, 100));
  budget.Return(&host, 100);
  EXPECT_EQ(host.bytes(), 0u);
  EXPECT_EQ(budget.bytes(), 100u);
}

TEST(BudgetTest, AHardBudgetIsNeverExceeded) {
  Budget budget({100, 75, false});
  Budget::Account host, other, third;
  EXPECT_TRUE(budget.Take(&host, 75));
  EXPECT_TRUE(budget.Take(&other, 25));
  EXPECT_FALSE(budget.Take(&third, 1));
  EXPECT_EQ(budget.bytes(), 100u);
}

TEST(HoldingTest, BytesCountUntilTheyAreReturned) {
  Budget budget({100, 75, false});
  Budget::Account host;
  {
    Holding held(&budget, &host), more(&budget, &host);
    EXPECT_TRUE(held.Take(50));
    EXPECT_FALSE(more.Take(26));
    EXPECT_EQ(more.bytes(), 0u);
    held.Return(10);
    EXPECT_TRUE(more.Take(26));
    EXPECT_EQ(budget.bytes(), 66u);
    more.ReturnAll();
    EXPECT_EQ(host.bytes(), 40u);
  }
  EXPECT_EQ(budget.bytes(), 0u);
  Holding uncounted(nullptr, nullptr);
  EXPECT_TRUE(uncounted.Take(1000));
}

// Without shares, two hosts that hold the whole budget would make the server refuse all others.
TEST(BudgetTest, EachOfManyHostsGetsAShare) {
  Budget budget({200, 100, true});
  std::array<Budget::Account, 50> hosts;
  for (Budget::Account& host : hosts) {
    while (budget.Take(&host, 1)) {
    }
    EXPECT_GE(host.bytes(), 200 / hosts.size());
  }
  // the shares form a harmonic series, not 50 full shares
  EXPECT_LT(budget.bytes(), 5 * budget.max_bytes());
}

TEST(BudgetTest, OneItemAtATimeMayExceedTheShare) {
  Budget budget({200, 100, true});
  Budget::Account host, other;
  EXPECT_TRUE(budget.Take(&host, 1000));
  EXPECT_FALSE(budget.Take(&host, 1));
  EXPECT_FALSE(budget.Take(&other, 1000));
  EXPECT_TRUE(budget.Take(&other, 50));
  budget.Return(&host, 1000);
  budget.Return(&other, 50);
  EXPECT_TRUE(budget.Take(&other, 1000));
}

TEST(BudgetTest, RequestsFromBeforeARefusalAreRefusedUntilThereIsRoom) {
  Budget budget({200, 100, true});
  Budget::Account host, other;
  const Budget::Clock::time_point before = Budget::Clock::now();
  EXPECT_TRUE(budget.Take(&host, 60));
  EXPECT_FALSE(budget.IsUsedUp(host, before));
  EXPECT_FALSE(budget.Take(&host, 60));
  EXPECT_TRUE(budget.IsUsedUp(host, before));
  EXPECT_FALSE(budget.IsUsedUp(other, before));
  EXPECT_FALSE(budget.IsUsedUp(host, Budget::Clock::now()));
  budget.Return(&host, 60);
  EXPECT_FALSE(budget.IsUsedUp(host, before));
}

TEST(BudgetTest, AHostRefusedBecauseOfOthersWaitsForThem) {
  Budget budget({200, 100, true});
  Budget::Account one, other, host;
  EXPECT_TRUE(budget.Take(&one, 150));
  EXPECT_TRUE(budget.Take(&other, 90));
  const Budget::Clock::time_point before = Budget::Clock::now();
  EXPECT_FALSE(budget.IsUsedUp(host, before));
  EXPECT_FALSE(budget.Take(&host, 70));
  EXPECT_TRUE(budget.IsUsedUp(host, before));
  budget.Return(&one, 150);
  EXPECT_FALSE(budget.IsUsedUp(host, before));
}

TEST(HostsTest, PeersOfOneHostShareOneObject) {
  Hosts hosts(100, 1000);
  const auto host = hosts.Of("ipv4:10.0.0.7:1");
  EXPECT_EQ(hosts.Of("ipv4:10.0.0.7:2"), host);
  EXPECT_NE(hosts.Of("ipv4:10.0.0.8:1"), host);
  for (int i = 0; i < 1000; ++i) hosts.Of("ipv4:10.0.1.1:" + std::to_string(i));
  EXPECT_EQ(hosts.Of("ipv4:10.0.0.7:3"), host);
}

TEST(HostsTest, SeveralThreadsMayFindHostsAndAddWastedTime) {
  Hosts hosts(1000, 1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&hosts] {
      for (int j = 0; j < 1000; ++j) {
        const auto host = hosts.Of("ipv4:10.0.0." + std::to_string(j % 100) + ":1");
        host->wasted.Add(std::chrono::nanoseconds(1));
        EXPECT_GE(host->wasted.InThisSecond().count(), 0);
        if (hosts.unread.Take(&host->unread, 200)) hosts.unread.Return(&host->unread, 200);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hosts.unread.bytes(), 0u);
}

TEST(HostsTest, ARefusalNamesTheHostAndTheFlag) {
  Hosts hosts(100, 1000);
  const auto host = hosts.Of("ipv4:10.0.0.7:1");
  EXPECT_TRUE(hosts.CheckUnread(*host, Budget::Clock::now()).ok());
  const Status refused = hosts.UnreadRefusal(*host);
  EXPECT_EQ(refused.code, StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message.find("clients at ipv4:10.0.0.7 have not read"), std::string::npos);
  EXPECT_NE(refused.message.find("--max_unread_response_bytes"), std::string::npos);
}

}  // namespace
}  // namespace colcast::net
