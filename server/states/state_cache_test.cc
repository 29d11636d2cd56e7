#include "server/states/state_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace colcast::states {
namespace {

const KeyHash kHash;

Key KeyOf(int64_t number) { return kHash(&number, sizeof(number)); }

StateRef StateOf(int64_t number, size_t size = 1000) {
  StateRef state = State::Make(size, /*layout=*/1);
  std::memcpy(state->data(), &number, sizeof(number));
  return state;
}

int64_t NumberIn(const StateRef& state) {
  int64_t number;
  std::memcpy(&number, state->data(), sizeof(number));
  return number;
}

// A cache of one owner's states.
struct Cache : StateCache {
  explicit Cache(size_t capacity_bytes) : StateCache(capacity_bytes) {}
  ~Cache() { Drop(&owner); }
  void Put(int64_t number, size_t size = 1000) {
    Insert(KeyOf(number), StateOf(number, size), &owner);
  }
  StateRef Get(int64_t number) { return Find(KeyOf(number)); }
  Counters owner;
};

TEST(StateCache, FindsInsertedStates) {
  Cache memory(1 << 20);
  memory.Put(7);
  EXPECT_EQ(NumberIn(memory.Get(7)), 7);
  EXPECT_FALSE(memory.Get(8));
  EXPECT_EQ(memory.owner.states, 1);
  EXPECT_GE(memory.owner.bytes, 1000);
}

TEST(StateCache, KeepsTheFirstStateOfAKey) {
  Cache memory(1 << 20);
  memory.Insert(KeyOf(7), StateOf(1), &memory.owner);
  memory.Insert(KeyOf(7), StateOf(2), &memory.owner);
  EXPECT_EQ(NumberIn(memory.Get(7)), 1);
  EXPECT_EQ(memory.owner.states, 1);
}

TEST(StateCache, FindsStatesInTheOrderOfTheKeys) {
  Cache memory(64 << 20);  // several shards
  std::vector<Key> keys;
  for (int64_t i = 0; i < 2000; ++i) {
    keys.push_back(KeyOf(i));
    if (i % 3 == 0) memory.Insert(keys.back(), StateOf(i), &memory.owner);
  }
  std::vector<StateRef> found;
  EXPECT_EQ(memory.FindAll(keys, &found), 667u);
  for (int64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(static_cast<bool>(found[i]), i % 3 == 0) << i;
    if (found[i]) {
      EXPECT_EQ(NumberIn(found[i]), i);
    }
  }
}

TEST(StateCache, StaysWithinItsCapacityForStatesOfAnySize) {
  constexpr size_t kCapacity = 4 << 20;
  Cache memory(kCapacity);
  std::mt19937 random(1);
  for (int64_t i = 0; i < 20'000; ++i) {
    memory.Put(i, 8 + random() % 5000);
    ASSERT_LE(memory.bytes(), kCapacity);
  }
  EXPECT_GT(memory.bytes(), kCapacity * 8 / 10) << "the memory is there to be used";
  EXPECT_EQ(memory.owner.evicted + memory.owner.states, 20'000);
}

TEST(StateCache, CountsMemoryAsTheAllocatorRoundsIt) {
  Cache memory(1 << 20);
  const StateRef state = StateOf(7, 1025);
  memory.Insert(KeyOf(7), state, &memory.owner);
  EXPECT_EQ(memory.owner.bytes, static_cast<int64_t>(state->memory_bytes()));
  EXPECT_GE(state->memory_bytes(), 1025 + sizeof(State));
}

TEST(StateCache, StatesTakeLittleMoreMemoryThanTheirBytes) {
  for (const size_t size : {1024, 2048, 4096}) {
    EXPECT_LE(State::Make(size, 0)->memory_bytes(), size + size / 10) << size;
  }
}

TEST(StateCache, DoesNotCacheAStateLargerThanItsCapacity) {
  Cache memory(1 << 20);
  memory.Put(1);
  memory.Put(7, 2 << 20);
  EXPECT_FALSE(memory.Get(7));
  EXPECT_TRUE(memory.Get(1)) << "nor does it make room for it";
}

TEST(StateCache, EvictedStatesLiveWhileTheyAreRead) {
  Cache memory(100'000);
  memory.Put(0);
  const StateRef held = memory.Get(0);
  for (int64_t i = 1; i < 1000; ++i) memory.Put(i);
  EXPECT_GT(memory.owner.evicted, 800);
  EXPECT_EQ(NumberIn(held), 0);
}

TEST(StateCache, AScanDoesNotEvictPopularStates) {
  Cache memory(500'000);
  for (int64_t i = 0; i < 200; ++i) memory.Put(i);
  for (int64_t i = 0; i < 200; ++i) EXPECT_TRUE(memory.Get(i));
  for (int64_t i = 1000; i < 20'000; ++i) memory.Put(i);
  int popular = 0;
  for (int64_t i = 0; i < 200; ++i) popular += memory.Get(i) ? 1 : 0;
  EXPECT_EQ(popular, 200);
}

TEST(StateCache, AStateThatReturnsSoonStaysLonger) {
  Cache memory(500'000);
  for (int64_t i = 0; i < 1000; ++i) memory.Put(i);
  ASSERT_FALSE(memory.Get(500));
  memory.Put(500);
  // Fills the small queue several times over.
  for (int64_t i = 2000; i < 2100; ++i) memory.Put(i);
  EXPECT_TRUE(memory.Get(500));
}

TEST(StateCache, DropRemovesOneOwnersStates) {
  StateCache memory(64 << 20);
  Counters old_version;
  Counters new_version;
  for (int64_t i = 0; i < 1000; ++i) {
    memory.Insert(KeyOf(i), StateOf(i), i % 2 == 0 ? &old_version : &new_version);
  }
  memory.Drop(&old_version);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(static_cast<bool>(memory.Find(KeyOf(i))), i % 2 == 1) << i;
  }
  memory.Drop(&new_version);
}

TEST(StateCache, ThreadsMayFindInsertAndDropConcurrently) {
  StateCache memory(2 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::mt19937 random(t);
      for (int round = 0; round < 3; ++round) {
        Counters owner;
        std::vector<Key> keys;
        std::vector<StateRef> found;
        for (int i = 0; i < 300; ++i) {
          keys.clear();
          for (int k = 0; k < 20; ++k) keys.push_back(KeyOf(random() % 5000));
          found.clear();
          memory.FindAll(keys, &found);
          for (size_t k = 0; k < keys.size(); ++k) {
            if (found[k]) {
              EXPECT_EQ(KeyOf(NumberIn(found[k])), keys[k]);
            }
          }
          const int64_t number = random() % 5000;
          memory.Insert(KeyOf(number), StateOf(number), &owner);
        }
        memory.Drop(&owner);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(memory.bytes(), size_t{2} << 20);
}

}  // namespace
}  // namespace colcast::states
