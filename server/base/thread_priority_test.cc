#include "server/base/thread_priority.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace colcast {
namespace {

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(ThreadPriorityTest, TheThreadAndThoseItStartsGiveWayAndNoOther) {
  const int before = NiceOfThisThread();
  std::thread([&] {
    LowerThisThreadsPriority();
    EXPECT_GT(NiceOfThisThread(), before);
    EXPECT_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
    std::thread([&] { EXPECT_GT(NiceOfThisThread(), before); }).join();
  }).join();
  EXPECT_EQ(NiceOfThisThread(), before);
}

}  // namespace
}  // namespace colcast
