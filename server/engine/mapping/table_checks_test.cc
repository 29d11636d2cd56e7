#include "server/engine/mapping/table_checks.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "server/engine/mapping/testing.h"

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;

using TableChecksTest = MappingTest;

template <typename Condition>
void WaitUntil(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(TableChecksTest, ReadsAllTablesAndSaysWhatIsInMemory) {
  const auto session = Restored();
  const TableChecks checks(MappedTables::Of(session.get()), /*lock=*/true);
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  const TableMemory memory = checks.memory();
  EXPECT_EQ(memory.mapped, 2 * kBytes);
  EXPECT_EQ(memory.resident, 2 * kBytes);
  EXPECT_EQ(memory.locked, 2 * kBytes);
  EXPECT_EQ(memory.damage, "");
}

TEST_F(TableChecksTest, FindsBytesThatAreNotThoseSaved) {
  Damage();
  const auto session = Restored();
  const TableChecks checks(MappedTables::Of(session.get()), /*lock=*/false);
  WaitUntil([&] { return !checks.memory().damage.empty(); });
  EXPECT_THAT(checks.memory().damage, HasSubstr(data_));
}

TEST_F(TableChecksTest, ReadsATableAgainWhoseFileWasWrittenToWithItsOldTime) {
  const auto time = std::filesystem::last_write_time(data_);
  const auto session = Restored();
  const TableChecks checks(MappedTables::Of(session.get()), /*lock=*/false);
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  Damage();
  std::filesystem::last_write_time(data_, time);
  WaitUntil([&] { return !checks.memory().damage.empty(); });
}

}  // namespace
}  // namespace colcast::engine
