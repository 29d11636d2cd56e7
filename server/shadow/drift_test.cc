#include "server/shadow/drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace colcast::shadow {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// An output with a value per candidate.
template <typename T>
struct Values {
  Values(DataType of, std::vector<T> given) : dtype(of), values(std::move(given)) {}
  OutputColumn Column(const char* name = "score") const {
    return {name, dtype, dims, values.data(), nullptr};
  }

  DataType dtype;
  std::vector<T> values;
  std::vector<int64_t> dims{static_cast<int64_t>(values.size())};
};

using Floats = std::vector<float>;

OutputDrift Apart(const Floats& live, const Floats& shadow) {
  const Values<float> a(DT_FLOAT, live), b(DT_FLOAT, shadow);
  const std::vector<OutputColumn> columns{a.Column()};
  const Drift drift = Compare(columns, {b.Column()});
  EXPECT_FALSE(drift.other_form);
  return drift.outputs.at(0);
}

Floats Falling(int count) {
  Floats scores;
  for (int i = 0; i < count; ++i) scores.push_back(static_cast<float>(-i));
  return scores;
}

TEST(DriftTest, TheLargestAbsoluteDifference) {
  EXPECT_EQ(Apart({1, 2, 3}, {1, 2, 3}).difference, 0);
  EXPECT_EQ(Apart({1, 2, 3}, {1.5, 4, 3}).difference, 2);
  EXPECT_EQ(Apart({}, {}).difference, 0);
}

TEST(DriftTest, WhatIsNoNumberOrInfinite) {
  const auto inf = static_cast<float>(kInfinite);
  EXPECT_EQ(Apart({kNan, inf}, {kNan, inf}).difference, 0);
  EXPECT_EQ(Apart({kNan}, {1}).difference, kInfinite);
  EXPECT_EQ(Apart({inf}, {-inf}).difference, kInfinite);
}

TEST(DriftTest, TopTenAreCandidatesInAnyOrder) {
  EXPECT_FALSE(Apart(Falling(10), Falling(10)).same_top10.has_value());
  Floats scores = Falling(11);
  EXPECT_TRUE(*Apart(Falling(11), scores).same_top10);
  std::swap(scores[0], scores[9]);
  EXPECT_TRUE(*Apart(Falling(11), scores).same_top10);
  std::swap(scores[9], scores[10]);
  EXPECT_FALSE(*Apart(Falling(11), scores).same_top10);
}

TEST(DriftTest, NanIsLowestAndTheFirstOfEqualScoresIsHigher) {
  Floats scores = Falling(11);
  scores[10] = kNan;
  EXPECT_TRUE(*Apart(Falling(11), scores).same_top10);
  EXPECT_TRUE(*Apart(Falling(11), Floats(11, 0)).same_top10);
  scores[0] = kNan;
  EXPECT_TRUE(*Apart(Falling(11), scores).same_top10);  // of the two NaNs, the first is higher
  scores[10] = -100;
  EXPECT_FALSE(*Apart(Falling(11), scores).same_top10);
}

TEST(DriftTest, ValuesOfSeveralPerCandidateDoNotRank) {
  const Values<float> values(DT_FLOAT, Falling(22));
  const std::vector<int64_t> dims{11, 2};
  std::vector<OutputColumn> columns{values.Column()};
  columns[0].dims = dims;
  EXPECT_FALSE(Compare(columns, columns).outputs.at(0).same_top10.has_value());
}

TEST(DriftTest, EveryDtypeOfNumbers) {
  const auto apart = [](const auto& a, const auto& b) {
    return Compare({a.Column()}, {b.Column()}).outputs.at(0).difference;
  };
  EXPECT_EQ(apart(Values<double>(DT_DOUBLE, {1}), Values<double>(DT_DOUBLE, {1.25})), 0.25);
  EXPECT_EQ(apart(Values<int64_t>(DT_INT64, {5}), Values<int64_t>(DT_INT64, {-5})), 10);
  EXPECT_EQ(apart(Values<uint8_t>(DT_UINT8, {255}), Values<uint8_t>(DT_UINT8, {0})), 255);
  // The halves are 1 and 1.5, then 2^-24, the smallest half, and 0.
  EXPECT_EQ(apart(Values<uint16_t>(DT_HALF, {0x3c00}), Values<uint16_t>(DT_HALF, {0x3e00})), 0.5);
  EXPECT_EQ(apart(Values<uint16_t>(DT_HALF, {1}), Values<uint16_t>(DT_HALF, {0})),
            std::ldexp(1, -24));
  EXPECT_EQ(apart(Values<uint16_t>(DT_HALF, {0xfc00}), Values<uint16_t>(DT_HALF, {0x7e00})),
            kInfinite);
  EXPECT_EQ(apart(Values<uint16_t>(DT_BFLOAT16, {0x3f80}), Values<uint16_t>(DT_BFLOAT16, {0x3fc0})),
            0.5);
}

TEST(DriftTest, WhatIsNoNumberIsTheSameOrNot) {
  const Values<uint8_t> yes(DT_BOOL, {1}), no(DT_BOOL, {0});
  EXPECT_EQ(Compare({yes.Column()}, {yes.Column()}).outputs.at(0).difference, 0);
  EXPECT_EQ(Compare({yes.Column()}, {no.Column()}).outputs.at(0).difference, kInfinite);
}

TEST(DriftTest, AnotherFormIsNotCompared) {
  const Values<float> one(DT_FLOAT, {1}), two(DT_FLOAT, {1, 2});
  const Values<double> wide(DT_DOUBLE, {1});
  const std::vector<OutputColumn> live{one.Column("a"), one.Column("b")};
  for (const std::vector<OutputColumn>& shadow : {std::vector<OutputColumn>{one.Column("b")},
                                                  {one.Column("b"), two.Column("a")},
                                                  {wide.Column("a"), one.Column("b")},
                                                  {one.Column("b"), one.Column("other")}}) {
    const Drift drift = Compare(live, shadow);
    EXPECT_TRUE(drift.other_form);
    ASSERT_EQ(drift.outputs.size(), 1u);
    EXPECT_EQ(drift.outputs[0].name, "b");
  }
  const Drift more = Compare({live[0]}, live);
  EXPECT_TRUE(more.other_form);
  EXPECT_EQ(more.outputs.size(), 1u);
}

TEST(KeptOutputsTest, OutliveWhatTheyWereMadeFrom) {
  KeptOutputs kept;
  {
    const Values<float> scores(DT_FLOAT, {1, 2});
    const std::vector<std::string> names{"ann", std::string("b\0b", 3)};
    OutputColumn strings{"tag", DT_STRING, scores.dims, names.data(),
                         [](const void* data, int64_t i) {
                           return std::string_view(static_cast<const std::string*>(data)[i]);
                         }};
    kept = KeptOutputs({scores.Column(), strings});
  }
  const KeptOutputs moved = std::move(kept);
  const Values<float> same(DT_FLOAT, {1, 2});
  const std::vector<OutputColumn>& columns = moved.columns();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(Compare({same.Column()}, {columns[0]}).outputs.at(0).difference, 0);
  EXPECT_EQ(columns[1].name, "tag");
  EXPECT_EQ(columns[1].string_at(columns[1].data, 1), std::string_view("b\0b", 3));
  EXPECT_EQ(Compare(columns, columns).outputs.at(1).difference, 0);
}

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
