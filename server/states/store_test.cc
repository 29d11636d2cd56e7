#include "server/states/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace colcast::states {
namespace {

constexpr Key kKey{1, 2};

StateRef StateOf(uint8_t value) {
  StateRef state = State::Make(1, 0);
  *state->data() = value;
  return state;
}

class StoreTest : public ::testing::Test {
 protected:
  void WaitUntilWaiting(int64_t threads) {
    while (store_.waiting() != threads) std::this_thread::yield();
  }

  Memory memory_{1 << 20};
  Store store_{"user", &memory_, /*stretch=*/1000};
};

TEST_F(StoreTest, IsOffWithoutMemory) { EXPECT_FALSE(Store("user", nullptr, 1000).on()); }

TEST_F(StoreTest, FindsAndCounts) {
  store_.Insert(kKey, StateOf(7));
  std::vector<StateRef> found;
  EXPECT_EQ(store_.FindAll({kKey, {3, 4}}, &found), 1u);
  EXPECT_EQ(*found[0]->data(), 7);
  EXPECT_FALSE(found[1]);
  const StoreStats stats = store_.stats();
  EXPECT_EQ(stats.store, "user");
  EXPECT_EQ(stats.found, 1);
  EXPECT_EQ(stats.computed, 1);
  EXPECT_EQ(stats.states, 1);
}

TEST_F(StoreTest, ForgetsEverythingWithTheVersion) {
  {
    Store version("user", &memory_, 1000);
    version.Insert(kKey, StateOf(7));
    EXPECT_TRUE(memory_.Find(kKey));
  }
  EXPECT_FALSE(memory_.Find(kKey));
}

TEST_F(StoreTest, OneOfManyComputesAndTheOthersGetWhatItMade) {
  std::atomic<int> computed{0};
  Store::Claim first;
  ASSERT_FALSE(store_.FindOrClaim(kKey, &first));
  ASSERT_TRUE(first.held());
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      Store::Claim claim;
      const StateRef state = store_.FindOrClaim(kKey, &claim);
      computed += claim.held();
      EXPECT_EQ(*state->data(), 7);
    });
  }
  WaitUntilWaiting(10);
  first.Fulfil(StateOf(7));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(computed, 0);
  EXPECT_EQ(store_.stats().computed, 1);
  EXPECT_EQ(store_.stats().found, 10);
}

TEST_F(StoreTest, ThoseWhoWaitGetAStateTooLargeToBeKept) {
  Store::Claim first;
  ASSERT_FALSE(store_.FindOrClaim(kKey, &first));
  std::thread waiter([&] {
    Store::Claim claim;
    EXPECT_EQ(store_.FindOrClaim(kKey, &claim)->size(), size_t{2} << 20);
  });
  WaitUntilWaiting(1);
  first.Fulfil(State::Make(2 << 20, 0));
  waiter.join();
  EXPECT_FALSE(store_.Find(kKey));
}

TEST_F(StoreTest, WhenOneGivesUpTheNextTakesOver) {
  std::atomic<int> claims{0};
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  {
    Store::Claim first;
    ASSERT_FALSE(store_.FindOrClaim(kKey, &first));
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&] {
        Store::Claim claim;
        const StateRef state = store_.FindOrClaim(kKey, &claim);
        found += static_cast<bool>(state);
        // The first two to take over fail as well.
        if (claim.held() && ++claims == 3) claim.Fulfil(StateOf(7));
      });
    }
    WaitUntilWaiting(5);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claims, 3);
  EXPECT_EQ(found, 2);
}

TEST_F(StoreTest, AFailureWithoutWaitersLeavesNothingBehind) {
  {
    Store::Claim failed;
    store_.FindOrClaim(kKey, &failed);
  }
  Store::Claim claim;
  EXPECT_FALSE(store_.FindOrClaim(kKey, &claim));
  EXPECT_TRUE(claim.held());
}

TEST_F(StoreTest, ManyThreadsAndKeysNeverMixStatesUp) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        const auto number = static_cast<uint8_t>((i * 7 + t) % 50);
        Store::Claim claim;
        StateRef state = store_.FindOrClaim({number, number}, &claim);
        if (claim.held() && i % 11 != 0) claim.Fulfil(StateOf(number));
        if (state) {
          EXPECT_EQ(*state->data(), number);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store_.stats().computed, 50);
}

}  // namespace
}  // namespace colcast::states
