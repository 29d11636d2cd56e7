#include "server/tables/polled_files.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace colcast::tables {
namespace {

constexpr std::chrono::milliseconds kSoon(1);
constexpr std::chrono::hours kNever(1000);

void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(PollThreadTest, FunctionsAreCalledPeriodicallyOnOneThread) {
  PollThread poller;
  std::atomic<int> first{0}, second{0};
  std::atomic<bool> runs{false}, together{false};
  const auto counting = [&](std::atomic<int>* count) {
    return [&, count] {
      together = together || runs.exchange(true);
      ++*count;
      runs = false;
    };
  };
  std::vector<PollThread::Job> jobs(2);
  ASSERT_TRUE(poller.Add(kSoon, counting(&first), &jobs[0]).ok());
  ASSERT_TRUE(poller.Add(kSoon, counting(&second), &jobs[1]).ok());
  WaitUntil([&] { return first > 2 && second > 2; });
  EXPECT_FALSE(together);
}

TEST(PollThreadTest, DestroyingAJobWaitsForItsCallAndStopsCalls) {
  PollThread poller;
  std::atomic<bool> runs{false}, may_end{false}, ended{false};
  const auto poll = [&] {
    runs = true;
    WaitUntil([&] { return may_end.load(); });
    ended = true;
  };
  PollThread::Job job;
  ASSERT_TRUE(poller.Add(kSoon, poll, &job).ok());
  WaitUntil([&] { return runs.load(); });
  may_end = true;
  job.reset();
  EXPECT_TRUE(ended.exchange(false));
  poller.PollNow();
  EXPECT_FALSE(ended);
}

TEST(PollThreadTest, PollNowCallsEarlyEvenAfterAnException) {
  PollThread poller;
  std::atomic<int> calls{0};
  PollThread::Job job;
  const auto poll = [&] {
    if (++calls == 1) throw std::runtime_error("once");
  };
  ASSERT_TRUE(poller.Add(kNever, poll, &job).ok());
  for (int expected = 1; expected < 3; ++expected) {
    poller.PollNow();
    WaitUntil([&] { return calls == expected; });
  }
}

TEST(PollThreadTest, UsersShareOnePollerThatEndsWithTheLastUser) {
  std::shared_ptr<PollThread> first = PollThread::Shared();
  EXPECT_EQ(first, PollThread::Shared());
  const std::weak_ptr<PollThread> weak = first;
  first = nullptr;
  EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace colcast::tables
