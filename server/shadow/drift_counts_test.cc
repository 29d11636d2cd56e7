#include "server/shadow/drift_counts.h"

#include <gtest/gtest.h>

#include <limits>

namespace colcast::shadow {
namespace {

const Versions kVersions{"m", 3, 4};

TEST(DriftCountsTest, CountsByVersionsAndOutput) {
  DriftCounts counts;
  counts.CountCompared(kVersions, {{{"score", 0.5, true}, {"tag", 0, std::nullopt}}, false});
  counts.CountCompared(kVersions, {{{"score", 0.25, false}}, true});
  counts.CountCompared({"m", 3, 5}, {});
  counts.CountFailed(kVersions, Internal("broken"));
  const std::vector<VersionCounts> all = counts.versions();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].versions, kVersions);
  EXPECT_EQ(all[0].compared, 1);
  EXPECT_EQ(all[0].other_form, 1);
  EXPECT_EQ(all[0].failed, 1);
  EXPECT_EQ(all[0].last_error, "broken");
  ASSERT_EQ(all[0].outputs.size(), 2u);
  const OutputCounts& score = all[0].outputs[0];
  EXPECT_EQ(score.name, "score");
  EXPECT_EQ(score.largest, 0.5);
  EXPECT_EQ(score.difference.Count(), 2);
  EXPECT_EQ(score.same_top10, 1);
  EXPECT_EQ(score.other_top10, 1);
  EXPECT_EQ(all[0].outputs[1].same_top10 + all[0].outputs[1].other_top10, 0);
  EXPECT_EQ(all[1].compared, 1);
  EXPECT_TRUE(all[1].outputs.empty());
}

TEST(DriftCountsTest, TheLeastDifferenceIsNotNone) {
  DriftCounts counts;
  counts.CountCompared(kVersions, {{{"score", 1e-12, std::nullopt}}, false});
  const OutputCounts score = counts.versions()[0].outputs[0];
  EXPECT_EQ(score.difference.counts[0], 0);
  EXPECT_EQ(score.difference.counts[1], 1);
}

TEST(DriftCountsTest, AnInfiniteDifferenceLeavesTheSumANumber) {
  DriftCounts counts;
  const double infinite = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 100; ++i) {
    counts.CountCompared(kVersions, {{{"score", infinite, std::nullopt}}, false});
  }
  const OutputCounts score = counts.versions()[0].outputs[0];
  EXPECT_EQ(score.largest, infinite);
  EXPECT_EQ(score.difference.counts.back(), 100);
  EXPECT_GT(score.difference.sum, 0);
}

TEST(DriftCountsTest, KeepsTheLastVersionsOnly) {
  DriftCounts counts;
  constexpr auto kMost = static_cast<int64_t>(DriftCounts::kMaxVersions);
  for (int64_t version = 0; version <= kMost; ++version) {
    counts.CountCompared({"m", 1, version}, {});
  }
  const std::vector<VersionCounts> all = counts.versions();
  ASSERT_EQ(all.size(), DriftCounts::kMaxVersions);
  EXPECT_EQ(all.front().versions.shadow, 1);
  EXPECT_EQ(all.back().versions.shadow, kMost);
}

TEST(DriftCountsTest, WhatDidNotRunByModelAndReason) {
  DriftCounts counts;
  counts.CountNotRun("m", NotRun::kBusy);
  counts.CountNotRun("m", NotRun::kBusy);
  counts.CountNotRun("other", NotRun::kNotServed);
  const auto not_run = counts.not_run();
  EXPECT_EQ(not_run.at("m")[static_cast<int>(NotRun::kBusy)], 2);
  EXPECT_EQ(not_run.at("other")[static_cast<int>(NotRun::kNotServed)], 1);
}

}  // namespace
}  // namespace colcast::shadow
