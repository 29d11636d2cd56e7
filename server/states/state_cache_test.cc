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

TEST(StateCache, FindsWhatWasInserted) {
  StateCache memory(1 << 20);
  Counters owner;
  memory.Insert(KeyOf(7), StateOf(7), &owner);
  EXPECT_EQ(NumberIn(memory.Find(KeyOf(7))), 7);
  EXPECT_FALSE(memory.Find(KeyOf(8)));
  EXPECT_EQ(owner.states, 1);
  EXPECT_GE(owner.bytes, 1000);
  memory.Drop(&owner);
}

TEST(StateCache, KeepsTheFirstStateOfAKey) {
  StateCache memory(1 << 20);
  Counters owner;
  memory.Insert(KeyOf(7), StateOf(1), &owner);
  memory.Insert(KeyOf(7), StateOf(2), &owner);
  EXPECT_EQ(NumberIn(memory.Find(KeyOf(7))), 1);
  EXPECT_EQ(owner.states, 1);
  memory.Drop(&owner);
}

TEST(StateCache, FindsManyKeysInTheirOrder) {
  StateCache memory(64 << 20);  // several shards
  Counters owner;
  std::vector<Key> keys;
  for (int64_t i = 0; i < 2000; ++i) {
    keys.push_back(KeyOf(i));
    if (i % 3 == 0) memory.Insert(keys.back(), StateOf(i), &owner);
  }
  std::vector<StateRef> found;
  EXPECT_EQ(memory.FindAll(keys, &found), 667u);
  for (int64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(static_cast<bool>(found[i]), i % 3 == 0) << i;
    if (found[i]) {
      EXPECT_EQ(NumberIn(found[i]), i);
    }
  }
  memory.Drop(&owner);
}

TEST(StateCache, StaysWithinItsCapacityForAnySizes) {
  constexpr size_t kCapacity = 4 << 20;
  StateCache memory(kCapacity);
  Counters owner;
  std::mt19937 random(1);
  for (int64_t i = 0; i < 20'000; ++i) {
    memory.Insert(KeyOf(i), StateOf(i, 8 + random() % 5000), &owner);
    ASSERT_LE(memory.bytes(), kCapacity);
  }
  EXPECT_GT(memory.bytes(), kCapacity * 8 / 10) << "the memory is there to be used";
  EXPECT_EQ(owner.evicted + owner.states, 20'000);
  memory.Drop(&owner);
}

TEST(StateCache, CountsMemoryAsTheAllocatorRoundsIt) {
  StateCache memory(1 << 20);
  Counters owner;
  const StateRef state = StateOf(7, 1025);
  memory.Insert(KeyOf(7), state, &owner);
  EXPECT_EQ(owner.bytes, static_cast<int64_t>(state->memory_bytes()));
  EXPECT_GE(state->memory_bytes(), 1025 + sizeof(State));
  memory.Drop(&owner);
}

TEST(StateCache, AddsLittleToTheBytesOfARow) {
  for (const size_t size : {1024, 2048, 4096}) {
    EXPECT_LE(State::Make(size, 0)->memory_bytes(), size + size / 10) << size;
  }
}

TEST(StateCache, DoesNotKeepAStateBeyondItsCapacity) {
  StateCache memory(1 << 20);
  Counters owner;
  memory.Insert(KeyOf(1), StateOf(1), &owner);
  memory.Insert(KeyOf(7), StateOf(7, 2 << 20), &owner);
  EXPECT_FALSE(memory.Find(KeyOf(7)));
  EXPECT_TRUE(memory.Find(KeyOf(1))) << "nor does it make room for it";
  memory.Drop(&owner);
}

TEST(StateCache, EvictedStatesLiveWhileTheyAreRead) {
  StateCache memory(100'000);
  Counters owner;
  memory.Insert(KeyOf(0), StateOf(0), &owner);
  const StateRef held = memory.Find(KeyOf(0));
  for (int64_t i = 1; i < 1000; ++i) memory.Insert(KeyOf(i), StateOf(i), &owner);
  EXPECT_GT(owner.evicted, 800);
  EXPECT_EQ(NumberIn(held), 0);
  memory.Drop(&owner);
}

TEST(StateCache, AScanDoesNotEvictPopularStates) {
  StateCache memory(500'000);
  Counters owner;
  for (int64_t i = 0; i < 200; ++i) memory.Insert(KeyOf(i), StateOf(i), &owner);
  for (int64_t i = 0; i < 200; ++i) EXPECT_TRUE(memory.Find(KeyOf(i)));
  for (int64_t i = 1000; i < 20'000; ++i) memory.Insert(KeyOf(i), StateOf(i), &owner);
  int popular = 0;
  for (int64_t i = 0; i < 200; ++i) popular += memory.Find(KeyOf(i)) ? 1 : 0;
  EXPECT_EQ(popular, 200);
  memory.Drop(&owner);
}

TEST(StateCache, AStateThatReturnsSoonStaysLonger) {
  StateCache memory(500'000);
  Counters owner;
  for (int64_t i = 0; i < 1000; ++i) memory.Insert(KeyOf(i), StateOf(i), &owner);
  ASSERT_FALSE(memory.Find(KeyOf(500)));
  memory.Insert(KeyOf(500), StateOf(500), &owner);
  // Fills the small queue several times over.
  for (int64_t i = 2000; i < 2100; ++i) memory.Insert(KeyOf(i), StateOf(i), &owner);
  EXPECT_TRUE(memory.Find(KeyOf(500)));
  memory.Drop(&owner);
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

TEST(StateCache, ThreadsFindInsertAndDropAtTheSameTime) {
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
