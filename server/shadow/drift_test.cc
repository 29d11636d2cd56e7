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
  EXPECT_TRUE(*Apart(Falling(11), scores).same_top10);  // the first of two
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
  // 1 and 1.5; 2^-24, the least half, and 0.
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

}  // namespace
}  // namespace colcast::shadow
