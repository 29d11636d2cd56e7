#include "server/engine/mapping/table_checks.h"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
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
  ASSERT_TRUE(LockTables(*MappedTables::Of(session.get())).ok());
  const TableChecks checks(MappedTables::Of(session.get()));
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  const TableMemory memory = checks.memory();
  EXPECT_EQ(memory.mapped, 2 * kBytes);
  EXPECT_EQ(memory.resident, 2 * kBytes);
  EXPECT_EQ(memory.locked, 2 * kBytes);
  EXPECT_EQ(memory.damage, "");
}

TEST_F(TableChecksTest, ReadsTablesThatExceedTheMemoryAsWell) {
  const auto session = Restored();
  const TableChecks checks(MappedTables::Of(session.get()), 2 * kBytes - 1);
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  EXPECT_EQ(checks.memory().damage, "");
}

TEST_F(TableChecksTest, FindsBytesThatAreNotThoseSaved) {
  Damage();
  for (const int64_t available : {0, 1 << 30}) {
    const auto session = Restored();
    const TableChecks checks(MappedTables::Of(session.get()), available);
    WaitUntil([&] { return !checks.memory().damage.empty(); });
    EXPECT_THAT(checks.memory().damage, HasSubstr(data_));
  }
}

TEST_F(TableChecksTest, ReadsATableAgainWhoseFileWasWrittenToWithItsOldTime) {
  const auto time = std::filesystem::last_write_time(data_);
  const auto session = Restored();
  const TableChecks checks(MappedTables::Of(session.get()));
  WaitUntil([&] { return checks.memory().checked == 2 * kBytes; });
  Damage();
  std::filesystem::last_write_time(data_, time);
  WaitUntil([&] { return !checks.memory().damage.empty(); });
}

// While it exists, this thread may not lock more than a limit, even as root.
class LockLimit {
 public:
  explicit LockLimit(rlim_t bytes) {
    getrlimit(RLIMIT_MEMLOCK, &before_);
    const struct rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    syscall(SYS_capget, &header_, capabilities_);
    auto without = capabilities_[0];
    without.effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    const __user_cap_data_struct changed[] = {without, capabilities_[1]};
    syscall(SYS_capset, &header_, changed);
  }
  ~LockLimit() {
    setrlimit(RLIMIT_MEMLOCK, &before_);
    syscall(SYS_capset, &header_, capabilities_);
  }

 private:
  struct rlimit before_ = {};
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct capabilities_[2] = {};
};

TEST_F(TableChecksTest, TablesThatMayNotBeLockedSayWhatTheyNeedAndTheLimit) {
  const auto session = Restored();
  const auto tables = MappedTables::Of(session.get());
  {
    const LockLimit limit(4000);
    const absl::Status status = LockTables(*tables);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("--lock_tables needs ", 2 * kBytes, " bytes")));
    EXPECT_THAT(std::string(status.message()), HasSubstr(data_));
    EXPECT_THAT(std::string(status.message()), HasSubstr("may lock 4000, "));
  }
  for (const auto& table : tables->tables()) EXPECT_FALSE(table->is_locked);
}

}  // namespace
}  // namespace colcast::engine
