#include "server/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

#include "server/base/log.h"

namespace colcast {
namespace {

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(ThreadPriorityTest, OnlyTheThreadAndItsChildrenGetLowPriority) {
  const int before = NiceOfThisThread();
  std::thread([&] {
    LowerThisThreadsPriority();
    EXPECT_GE(NiceOfThisThread(), std::max(before, 10));
    EXPECT_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
    std::thread([&] { EXPECT_GE(NiceOfThisThread(), std::max(before, 10)); }).join();
  }).join();
  EXPECT_EQ(NiceOfThisThread(), before);
}

TEST(StopFlagTest, SetWakesWaitersImmediately) {
  StopFlag stop;
  bool was_set = false;
  std::thread waits([&] { was_set = stop.WaitFor(std::chrono::hours(1)); });
  stop.Set();
  waits.join();
  EXPECT_TRUE(was_set);
  EXPECT_TRUE(stop.IsSet());
  EXPECT_TRUE(stop.WaitFor(std::chrono::hours(1)));
}

TEST(StopFlagTest, WaitForTimesOut) {
  StopFlag stop;
  EXPECT_FALSE(stop.WaitFor(std::chrono::milliseconds(1)));
  EXPECT_FALSE(stop.IsSet());
}

using ::testing::HasSubstr;

TEST(ThreadTest, AnExceptionBecomesAnErrorThatNamesTheWork) {
  const Status status =
      RunCaught("poll", []() -> Status { throw std::runtime_error("Input/output error"); });
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_EQ(status.message, "poll: Input/output error");
  EXPECT_EQ(RunCaught("load", []() -> Status { throw std::bad_alloc(); }).code,
            StatusCode::kResourceExhausted);
  EXPECT_EQ(RunCaught("load", [] { return NotFound("none"); }).message, "none");
}

TEST(ThreadTest, AnExceptionIsLoggedAndTheBodyRunsAgain) {
  int runs = 0;
  Thread thread;
  ::testing::internal::CaptureStderr();
  const Status status = StartThread(
      "poll",
      [&runs] {
        if (++runs == 1) throw std::runtime_error("stale file handle");
      },
      &thread);
  ASSERT_TRUE(status.ok()) << status.message;
  thread.join();
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("poll: stale file handle"));
}

// Starts threads until one cannot start. A few may start despite the limit on address space,
// because the stacks of ended threads are reused.
Status StartThreads(const std::function<Status()>& start) {
  const rlimit none{1, 1};
  setrlimit(RLIMIT_AS, &none);
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = start();
  return status;
}

[[noreturn]] void ExitWith(const Status& status, const std::string& message) {
  LogError(status.message);
  const bool is_named = status.message.rfind(message, 0) == 0;
  std::_Exit(status.code == StatusCode::kResourceExhausted && is_named ? 0 : 1);
}

TEST(ThreadTest, ErrorsNameTheThreadThatCannotStart) {
  const auto start = [] {
    Thread thread;
    Status status = StartThread(
        "loads", [] { pause(); }, &thread);
    if (status.ok()) thread.detach();
    return status;
  };
  EXPECT_EXIT(ExitWith(StartThreads(start), "no thread for loads: "), ::testing::ExitedWithCode(0),
              "Resource temporarily unavailable");
}

}  // namespace
}  // namespace colcast
