#include "server/engine/mapping/table_reader_thread.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/engine/mapping/testing.h"

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;

using TableReaderThreadTest = MappingTest;

template <typename Condition>
void WaitUntil(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(TableReaderThreadTest, ReadsAllTablesAndCountsTheBytesInMemory) {
  const auto session = Restored();
  const TableReaderThread checks(MappedTables::Of(session.get()));
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  const TableMemory memory = checks.memory();
  EXPECT_EQ(memory.mapped, 2 * kBytes);
  EXPECT_EQ(memory.resident, 2 * kBytes);
  EXPECT_EQ(memory.damage, "");
}

TEST_F(TableReaderThreadTest, ReadsTablesLargerThanMemory) {
  const auto session = Restored();
  const TableReaderThread checks(MappedTables::Of(session.get()), 2 * kBytes - 1);
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  EXPECT_EQ(checks.memory().damage, "");
}

TEST_F(TableReaderThreadTest, FindsDamagedBytes) {
  Damage();
  for (const int64_t available : {0, 1 << 30}) {
    const auto session = Restored();
    const TableReaderThread checks(MappedTables::Of(session.get()), available);
    WaitUntil([&] { return !checks.memory().damage.empty(); });
    EXPECT_THAT(checks.memory().damage, HasSubstr(data_));
  }
}

TEST_F(TableReaderThreadTest, FindsAChangeThatKeepsTheModificationTime) {
  const auto time = std::filesystem::last_write_time(data_);
  const auto session = Restored();
  const TableReaderThread checks(MappedTables::Of(session.get()));
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  Damage();
  std::filesystem::last_write_time(data_, time);
  WaitUntil([&] { return !checks.memory().damage.empty(); });
}

TEST_F(TableReaderThreadTest, ATouchedFileIsUsedAgainOnceItsBytesAreChecked) {
  const auto session = Restored();
  const auto tables = MappedTables::Of(session.get());
  const TableReaderThread checks(MappedTables::Of(session.get()));
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  std::filesystem::last_write_time(
      data_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(tables->Check().ok());
  WaitUntil([&] { return !checks.damage().empty(); });
  WaitUntil([&] { return checks.damage().empty(); });
  EXPECT_TRUE(tables->Check().ok());
  EXPECT_EQ(checks.memory().checked, 2 * kBytes);
}

}  // namespace
}  // namespace colcast::engine
