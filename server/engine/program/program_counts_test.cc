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
               Field(&ProgramStats::count, count), Field(&ProgramStats::signature, "late"));
}

TEST(ProgramCountsTest, RunsAreCountedByProgramAndOutcome) {
  ProgramCounts counts("late", {"stages", "whole"});
  EXPECT_THAT(counts.stats(), IsEmpty());
  counts.Count(0, absl::InternalError("no states"));
  counts.Count(1, absl::OkStatus());
  counts.Count(0, absl::OkStatus());
  counts.Count(0, absl::OkStatus());
  EXPECT_THAT(counts.stats(),
              ElementsAre(Is("stages", "ok", 2), Is("stages", "failed", 1), Is("whole", "ok", 1)));
}

}  // namespace
}  // namespace colcast::engine
