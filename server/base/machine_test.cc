#include "server/base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

#include "server/base/fake_root_testing.h"

namespace colcast {
namespace {

class AvailableCoresTest : public FakeRootTest {
 protected:
  const int all_ = AvailableCores(root_);  // not limited by a control group
};

TEST_F(AvailableCoresTest, AThreadBoundToOneCoreHasOneCore) {
  std::thread([this] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(all_, CPU_COUNT(&allowed));
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&allowed);
    CPU_SET(first, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(AvailableCores(root_), 1);
  }).join();
}

TEST_F(AvailableCoresTest, AQuotaIsRoundedUp) {
  Write("proc/self/cgroup", "0::/pod/server\n");
  Write("sys/fs/cgroup/pod/server/cpu.max", "50000 100000\n");
  EXPECT_EQ(AvailableCores(root_), 1);
  Write("sys/fs/cgroup/pod/server/cpu.max", "150000 100000\n");
  EXPECT_EQ(AvailableCores(root_), std::min(all_, 2));
}

TEST_F(AvailableCoresTest, AParentGroupsQuotaCounts) {
  Write("proc/self/cgroup", "0::/pod/server\n");
  Write("sys/fs/cgroup/pod/cpu.max", "100000 100000\n");
  Write("sys/fs/cgroup/pod/server/cpu.max", "max 100000\n");
  EXPECT_EQ(AvailableCores(root_), 1);
}

TEST_F(AvailableCoresTest, AQuotaThatIsTooLargeOrUnreadableLimitsNothing) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(AvailableCores(root_), all_);
  Write("sys/fs/cgroup/cpu.max", "not a number\n");
  EXPECT_EQ(AvailableCores(root_), all_);
}

namespace fs = std::filesystem;

constexpr int64_t kMiB = 1 << 20;

class AvailableMemoryTest : public FakeRootTest {
 protected:
  AvailableMemoryTest() { Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 1024 kB\n"); }
  int64_t Available() const { return AvailableMemory(root_); }
  int64_t Total() const { return TotalMemory(root_); }
};

TEST_F(AvailableMemoryTest, WithoutGroupsTheMachinesMemoryCounts) { EXPECT_EQ(Available(), kMiB); }

TEST_F(AvailableMemoryTest, UnreadableLimitsAreIgnored) {
  fs::remove_all(root_);
  EXPECT_EQ(Available(), std::numeric_limits<int64_t>::max());
}

TEST_F(AvailableMemoryTest, PageCacheDoesNotCountAgainstAGroupsLimit) {
  Write("proc/self/cgroup", "0::/pod/server\n");
  Write("sys/fs/cgroup/pod/server/memory.max", "1000\n");
  Write("sys/fs/cgroup/pod/server/memory.current", "700\n");
  Write("sys/fs/cgroup/pod/server/memory.stat", "anon 500\ninactive_file 200\n");
  EXPECT_EQ(Available(), 500);
}

TEST_F(AvailableMemoryTest, AParentGroupsLimitCountsAndMaxIsNoLimit) {
  Write("proc/self/cgroup", "0::/pod/server\n");
  Write("sys/fs/cgroup/pod/memory.max", "900\n");
  Write("sys/fs/cgroup/pod/memory.current", "100\n");
  Write("sys/fs/cgroup/pod/server/memory.max", "max\n");
  Write("sys/fs/cgroup/pod/server/memory.current", "100\n");
  EXPECT_EQ(Available(), 800);
}

TEST_F(AvailableMemoryTest, InAContainerTheMountPointIsTheGroup) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "900\n");
  Write("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(AvailableMemoryTest, TotalMemoryIsTheMachinesOrTheLowestGroupLimit) {
  EXPECT_EQ(Total(), int64_t{16000000} * 1024);
  Write("proc/self/cgroup", "1:name=other:/x\n0::/pod/server\n");
  Write("sys/fs/cgroup/pod/memory.max", "900\n");
  Write("sys/fs/cgroup/pod/memory.current", "800\n");
  Write("sys/fs/cgroup/pod/server/memory.max", "max\n");
  EXPECT_EQ(Total(), 900);
}

}  // namespace
}  // namespace colcast
