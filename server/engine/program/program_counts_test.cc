#include "server/engine/program/program_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto Is(std::string_view program, std::string_view outcome, int64_t count) {
  return AllOf(Field(&ProgramStats::program, program), Field(&ProgramStats::outcome, outcome),
               Field(&ProgramStats::count, count));
}

TEST(ProgramCounts, ThereIsNothingBeforeTheFirstRun) {
  EXPECT_THAT(ProgramCounts().stats("late"), IsEmpty());
}

TEST(ProgramCounts, RunsAreCountedByProgramAndOutcome) {
  ProgramCounts counts;
  counts.Count("late", Program::kStages, absl::InternalError("no states"));
  counts.Count("late", Program::kWhole, absl::OkStatus());
  counts.Count("late", Program::kStages, absl::OkStatus());
  counts.Count("late", Program::kStages, absl::OkStatus());
  EXPECT_THAT(counts.stats("late"),
              ElementsAre(Is("whole", "ok", 1), Is("stages", "ok", 2), Is("stages", "failed", 1)));
  EXPECT_EQ(counts.stats("late")[0].signature, "late");
}

}  // namespace
}  // namespace colcast::engine
