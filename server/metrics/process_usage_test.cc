#include "server/metrics/process_usage.h"

#include <gtest/gtest.h>
#include <time.h>

#include <fstream>

namespace colcast::metrics {
namespace {

TEST(ProcessUsageTest, TellsOfThisProcess) {
  const ProcessUsage usage = ReadProcessUsage();
  EXPECT_GT(usage.cpu_seconds, 0);
  EXPECT_GT(usage.resident_bytes, 1 << 20);
  EXPECT_LT(usage.resident_bytes, int64_t{1} << 32);
  EXPECT_GT(usage.anonymous_bytes, 0);
  EXPECT_LT(usage.anonymous_bytes, usage.memory_limit);
  EXPECT_GE(usage.open_fds, 3);
  EXPECT_GT(usage.max_fds, usage.open_fds);
}

TEST(ProcessUsageTest, StartedBeforeNowAndStaysSo) {
  const double start = ReadProcessUsage().start_time_seconds;
  const auto now = static_cast<double>(time(nullptr));
  EXPECT_LE(start, now + 1);
  EXPECT_GT(start, now - 3600);
  EXPECT_EQ(ReadProcessUsage().start_time_seconds, start);
}

TEST(ProcessUsageTest, CountsAnOpenFile) {
  const int64_t before = ReadProcessUsage().open_fds;
  const std::ifstream file("/proc/self/stat");
  EXPECT_EQ(ReadProcessUsage().open_fds, before + 1);
}

}  // namespace
}  // namespace colcast::metrics
