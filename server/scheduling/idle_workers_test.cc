#include "server/scheduling/idle_workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace colcast::scheduling {
namespace {

class IdleWorkersTest : public testing::Test {
 protected:
  // Waits until `count` workers are idle; returns the lock, held.
  std::unique_lock<std::mutex> WaitForIdle(const IdleWorkers& idle, int count) {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      if (idle.count() == count) return lock;
      lock.unlock();
      std::this_thread::yield();
    }
  }

  std::mutex mutex_;
};

TEST_F(IdleWorkersTest, OneThatWaitsIsIdleUntilItIsWoken) {
  IdleWorkers idle(nullptr);
  std::thread worker([&] {
    IdleWorkers::Waiter waiter;
    std::unique_lock<std::mutex> lock(mutex_);
    idle.Wait(&lock, &waiter, Clock::now(), Clock::time_point::max());
  });
  {
    const auto lock = WaitForIdle(idle, 1);
    idle.WakeOne();
    EXPECT_EQ(idle.count(), 0);  // even before the worker runs
    idle.WakeOne();              // no effect: no worker waits
  }
  worker.join();
}

TEST_F(IdleWorkersTest, OneThatHasWaitedLongEnoughIsNotIdleAnyMore) {
  IdleWorkers idle(nullptr);
  IdleWorkers::Waiter waiter;
  std::unique_lock<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  idle.Wait(&lock, &waiter, now, now + std::chrono::milliseconds(1));
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_EQ(idle.count(), 0);
}

// An event source that always has an event.
class EventsNow final : public EventSource {
 public:
  explicit EventsNow(bool woken) : woken_(woken) {}
  bool Poll(Clock::time_point) override { return woken_; }
  void Wake() override { ++wakes; }

  int wakes = 0;

 private:
  const bool woken_;
};

TEST_F(IdleWorkersTest, EventsAreWokenForWhoeverWaitsForThem) {
  EventsNow events(true);
  IdleWorkers idle(&events);
  EXPECT_TRUE(idle.wait_for_events());
  std::unique_lock<std::mutex> lock(mutex_);
  idle.WakeOne();
  EXPECT_EQ(events.wakes, 0);  // no worker waits
  IdleWorkers::Waiter waiter;
  idle.Wait(&lock, &waiter, Clock::now(), Clock::time_point::max());
  EXPECT_EQ(idle.count(), 0);
  idle.WakeAll();
  EXPECT_EQ(events.wakes, 1);
}

}  // namespace
}  // namespace colcast::scheduling
