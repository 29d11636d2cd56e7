#include "server/models/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/base/fake_root_testing.h"

namespace colcast::models {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

class SizeOnDiskTest : public FakeRootTest {};

TEST_F(SizeOnDiskTest, AddsFilesAtAnyDepth) {
  Write("model/saved_model.pb", "12345");
  Write("model/variables/variables.data", "123");
  EXPECT_EQ(SizeOnDisk(root_ / "model").bytes, 8);
  EXPECT_EQ(SizeOnDisk(root_ / "model").graph_bytes, 5);
  fs::create_directory_symlink(root_ / "model", root_ / "link");
  EXPECT_EQ(SizeOnDisk(root_ / "link").bytes, 8);
  EXPECT_EQ(SizeOnDisk(root_ / "none").bytes, 0);
}

TEST(MemoryBudgetTest, RefusesWhatDoesNotFitWithItsMarginNamingTheSizes) {
  MemoryBudget budget(0.5, [] { return 300 * kMiB; });
  MemoryBudget::Reservation reservation;
  const Status status = budget.Reserve({201 * kMiB}, &reservation);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, AllOf(HasSubstr("201 MiB on disk"), HasSubstr("301 MiB"),
                                    HasSubstr("300 MiB are available")));
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &reservation).ok());
}

TEST(MemoryBudgetTest, AGraphIsHeldTenTimesMoreWhileItLoads) {
  MemoryBudget budget(0, [] { return 1120 * kMiB; });
  MemoryBudget::Reservation reservation;
  EXPECT_THAT(budget.Reserve({122 * kMiB, 100 * kMiB}, &reservation).message,
              AllOf(HasSubstr("the graph takes 100 MiB"), HasSubstr("1122 MiB")));
  EXPECT_TRUE(budget.Reserve({120 * kMiB, 100 * kMiB}, &reservation).ok());
}

TEST(MemoryBudgetTest, LoadsInProgressCount) {
  MemoryBudget budget(0, [] { return 300 * kMiB; });
  {
    MemoryBudget::Reservation first;
    ASSERT_TRUE(budget.Reserve({200 * kMiB}, &first).ok());
    MemoryBudget::Reservation second;
    EXPECT_FALSE(budget.Reserve({200 * kMiB}, &second).ok());
  }
  MemoryBudget::Reservation third;
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &third).ok());
}

TEST(MemoryBudgetTest, ANegativeMarginTurnsItOff) {
  MemoryBudget budget(-1, [] { return int64_t{0}; });
  MemoryBudget::Reservation reservation;
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &reservation).ok());
}

}  // namespace
}  // namespace colcast::models
