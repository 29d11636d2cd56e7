#include "server/engine/mapping/mapped_tables.h"

#include <gmock/gmock.h>

#include "server/engine/mapping/testing.h"

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using MappedTablesTest = MappingTest;

const StopFlag kGoOn;

TEST_F(MappedTablesTest, SessionsShareEqualTables) {
  const auto one = Restored(), other = Restored();
  EXPECT_EQ(MappedTables::Of(one.get())->tables(), MappedTables::Of(other.get())->tables());
}

TEST_F(MappedTablesTest, AChangedFileIsNotShared) {
  const auto one = Restored();
  Damage();
  EXPECT_FALSE(MappedTables::Of(one.get())->Check().ok());
  const auto other = Restored();
  EXPECT_NE(MappedTables::Of(one.get())->tables(), MappedTables::Of(other.get())->tables());
  EXPECT_TRUE(MappedTables::Of(other.get())->Check().ok());
}

TEST_F(MappedTablesTest, DamagedBytesMakeTheirFileFailPermanently) {
  Damage();
  const auto session = Restored();
  const auto tables = MappedTables::Of(session.get());
  EXPECT_TRUE(tables->Check().ok());
  for (const auto& table : tables->tables()) {
    const absl::Status status = CheckBytes(*table, kGoOn);
    // Damage anywhere in a file fails all its tables.
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << table->name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(table->name));
  }
  EXPECT_EQ(tables->Check().code(), absl::StatusCode::kDataLoss);
}

TEST_F(MappedTablesTest, AFileWithoutTablesIsNotChecked) {
  const auto session = Restored();
  const auto tables = MappedTables::Of(session.get());
  for (const auto& table : tables->tables()) {
    EXPECT_TRUE(CheckBytes(*table, kGoOn).ok());
    EXPECT_TRUE(table->is_checked);
    tables->Drop(*table);
  }
  EXPECT_THAT(tables->tables(), SizeIs(0));
  Damage();
  EXPECT_TRUE(tables->Check().ok());
}

}  // namespace
}  // namespace colcast::engine
