#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/states/state_cache.h"

namespace colcast::states {
namespace {

// Records rows [first, first + count).
void Note(ReuseEstimator* reuse, uint64_t first, uint64_t count) {
  const KeyHash hash({1, 2, 3, 4});
  std::vector<Key> keys;
  for (uint64_t row = first; row < first + count; ++row) keys.push_back(hash(&row, sizeof(row)));
  reuse->Note(keys.data(), keys.size());
}

int LookedAtOf(ReuseEstimator* reuse, int requests) {
  int looked = 0;
  for (int i = 0; i < requests; ++i) looked += reuse->Look();
  return looked;
}

TEST(ReuseEstimator, IsGoodUntilAWindowHasTooLittleReuse) {
  ReuseEstimator reuse(100);
  Note(&reuse, 0, 99);
  EXPECT_TRUE(reuse.good());
  Note(&reuse, 99, 1);
  EXPECT_FALSE(reuse.good());
}

TEST(ReuseEstimator, StaysGoodWhileOneRowIn32HasBeenSeen) {
  ReuseEstimator reuse(320);
  Note(&reuse, 0, 310);
  Note(&reuse, 0, 10);
  EXPECT_TRUE(reuse.good());
  Note(&reuse, 1000, 311);
  Note(&reuse, 1000, 9);
  EXPECT_FALSE(reuse.good());
}

TEST(ReuseEstimator, IsGoodAgainOnceRowsRepeat) {
  ReuseEstimator reuse(100);
  Note(&reuse, 0, 100);
  ASSERT_FALSE(reuse.good());
  Note(&reuse, 0, 100);
  EXPECT_TRUE(reuse.good());
}

TEST(ReuseEstimator, WithoutReuseOneRequestInSixteenIsSampled) {
  ReuseEstimator reuse(100);
  for (int64_t i = 0; i < ReuseEstimator::kWindowsToWatch; ++i) {
    EXPECT_EQ(LookedAtOf(&reuse, 16), 16);
    Note(&reuse, 100 * i, 100);
  }
  EXPECT_EQ(LookedAtOf(&reuse, 160), 10);
  Note(&reuse, 0, 100);
  EXPECT_EQ(LookedAtOf(&reuse, 160), 160);
}

constexpr Key kKey{1, 2};

StateRef StateOf(uint8_t value) {
  StateRef state = State::Make(1, 0);
  *state->data() = value;
  return state;
}

class StateStoreTest : public ::testing::Test {
 protected:
  void WaitUntilWaiting(int64_t threads) {
    while (store_.waiting() != threads) std::this_thread::yield();
  }

  StateCache memory_{1 << 20};
  StateStore store_{"user", &memory_, /*window_rows=*/1000};
};

TEST_F(StateStoreTest, FindsStatesAndCountsThem) {
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

TEST_F(StateStoreTest, DestroyingAStoreRemovesItsStates) {
  {
    StateStore version("user", &memory_, 1000);
    version.Insert(kKey, StateOf(7));
    EXPECT_TRUE(memory_.Find(kKey));
  }
  EXPECT_FALSE(memory_.Find(kKey));
}

// A request that has looked up its `keys`. It computes the rows `mine`, and waits for `awaited`.
struct Rows {
  Rows(StateStore* store, std::vector<Key> all) : keys(std::move(all)) {
    const int64_t num_ended = store->num_ended();
    store->FindAll(keys, &found);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!found[i]) mine.push_back(static_cast<int64_t>(i));
    }
    store->Begin(keys, num_ended, &mine, &awaited, &found, &work);
  }
  const std::vector<Key> keys;
  std::vector<StateRef> found;
  std::vector<int64_t> mine;
  std::vector<int64_t> awaited;
  StateStore::Work work;
};

using Places = std::vector<int64_t>;

TEST_F(StateStoreTest, ARequestWaitsForRowsThatAnotherRequestComputes) {
  Rows first(&store_, {{1, 1}, {2, 2}});
  EXPECT_EQ(first.mine, (Places{0, 1}));
  Rows second(&store_, {{3, 3}, {2, 2}, {1, 1}});
  EXPECT_EQ(second.mine, (Places{0}));
  EXPECT_EQ(second.awaited, (Places{1, 2}));
  second.work.End();
  std::thread waiter(
      [&] { store_.Await(second.keys, second.awaited, &second.found, second.work); });
  WaitUntilWaiting(1);
  store_.Insert({1, 1}, StateOf(7));
  store_.Insert({2, 2}, StateOf(8));
  first.work.End();
  waiter.join();
  EXPECT_EQ(*second.found[1]->data(), 8);
  EXPECT_EQ(*second.found[2]->data(), 7);
  EXPECT_EQ(store_.stats().found, 2);
}

TEST_F(StateStoreTest, OneRequestComputesARowForAllWaitingRequests) {
  Rows first(&store_, {kKey});
  ASSERT_EQ(first.mine, (Places{0}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      Rows other(&store_, {kKey});
      EXPECT_TRUE(other.mine.empty());
      other.work.End();
      store_.Await(other.keys, other.awaited, &other.found, other.work);
      EXPECT_EQ(*other.found[0]->data(), 7);
    });
  }
  WaitUntilWaiting(10);
  store_.Insert(kKey, StateOf(7));
  first.work.End();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_.stats().computed, 1);
  EXPECT_EQ(store_.stats().found, 10);
}

TEST_F(StateStoreTest, ASmallRequestDoesNotWaitForAMuchLargerOne) {
  std::vector<Key> many;
  for (uint64_t i = 0; i < 100; ++i) many.push_back({i, i});
  Rows large(&store_, many);
  {
    Rows few(&store_, {{7, 7}, {8, 8}});
    EXPECT_EQ(few.mine, (Places{0, 1}));
    EXPECT_TRUE(few.awaited.empty());
    store_.Insert({7, 7}, StateOf(7));
  }
  // The large request must still compute the other rows.
  EXPECT_EQ(Rows(&store_, many).awaited.size(), 99);
  store_.Insert({7, 7}, StateOf(7));
  large.work.End();
  EXPECT_EQ(*memory_.Find({7, 7})->data(), 7);
}

TEST_F(StateStoreTest, ARepeatedRowIsComputedOnce) {
  Rows rows(&store_, {{1, 1}, {1, 1}});
  EXPECT_EQ(rows.mine, (Places{0}));
  EXPECT_EQ(rows.awaited, (Places{1}));
  store_.Insert({1, 1}, StateOf(7));
  rows.work.End();
  store_.Await(rows.keys, rows.awaited, &rows.found, rows.work);
  EXPECT_EQ(*rows.found[1]->data(), 7);
}

TEST_F(StateStoreTest, AfterAFailureWaitingRequestsComputeTheRows) {
  auto failed = std::make_unique<Rows>(&store_, std::vector<Key>{{1, 1}});
  Rows second(&store_, {{1, 1}});
  second.work.End();
  std::thread waiter(
      [&] { store_.Await(second.keys, second.awaited, &second.found, second.work); });
  WaitUntilWaiting(1);
  failed.reset();
  waiter.join();
  EXPECT_FALSE(second.found[0]);
  EXPECT_EQ(Rows(&store_, {{1, 1}}).mine, (Places{0}));
}

TEST_F(StateStoreTest, StatesCachedMeanwhileAreFound) {
  const int64_t num_ended = store_.num_ended();
  std::vector<StateRef> found;
  store_.FindAll({kKey}, &found);
  {
    Rows other(&store_, {kKey});
    store_.Insert(kKey, StateOf(7));
  }
  Places mine = {0};
  Places awaited;
  StateStore::Work work;
  store_.Begin({kKey}, num_ended, &mine, &awaited, &found, &work);
  EXPECT_TRUE(mine.empty());
  EXPECT_EQ(*found[0]->data(), 7);
}

TEST_F(StateStoreTest, RequestsWithTheSameRowsDoNotDeadlock) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 200; ++i) {
        std::vector<Key> keys;
        for (uint64_t k = 0; k < 8; ++k) {
          const uint64_t number = (t % 2 == 0 ? k : 7 - k) + 4 * i;
          keys.push_back({number, number});
        }
        Rows rows(&store_, keys);
        for (const int64_t row : rows.mine) {
          if (i % 7 != 0) store_.Insert(keys[row], StateOf(static_cast<uint8_t>(keys[row].low)));
        }
        rows.work.End();
        store_.Await(rows.keys, rows.awaited, &rows.found, rows.work);
        for (size_t k = 0; k < keys.size(); ++k) {
          if (rows.found[k]) {
            EXPECT_EQ(*rows.found[k]->data(), static_cast<uint8_t>(keys[k].low));
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace colcast::states
