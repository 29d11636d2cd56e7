#include "server/engine/rewrites/int8_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "server/engine/rewrites/int8_product.h"
#include "server/engine/rewrites/products_testing.h"

namespace colcast::engine {
namespace {

class Int8RoundingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasInt8Products()) GTEST_SKIP() << "this CPU has no AVX512-VNNI";
  }

  // Rounds a row; what lies behind it and its slack must stay as it is.
  bool Round(const Floats& row) {
    rounded_.assign(row.size() + kRoundingSlack + 1, 7);
    const bool is_rounded = RoundRow(row.data(), row.size(), &rounding_, rounded_.data());
    EXPECT_EQ(rounded_.back(), 7);
    return is_rounded;
  }

  float Back(size_t i) const {
    return rounding_.step * static_cast<float>(int{rounded_[i]} - rounding_.zero);
  }

  // A row of which every value must be half a step off at most, and 0 stay 0.
  void ExpectRounded(const Floats& row) {
    ASSERT_TRUE(Round(row));
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(Back(i), row[i], row[i] == 0 ? 0 : rounding_.step * 0.5001f) << i;
    }
  }

  Rounding rounding_;
  std::vector<uint8_t> rounded_;
};

TEST_F(Int8RoundingTest, NoValueMovesByMoreThanHalfAStep) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t depth : {1, 3, 15, 16, 17, 32, 100, 660}) {
    for (const float scale : {1e-30f, 1e-3f, 1.0f, 1e30f}) {
      for (const float shift : {-10.0f, -1.0f, 0.0f, 1.0f, 10.0f}) {
        Floats row(depth);
        for (float& value : row) value = scale * (normal(random) + shift);
        if (Round(row)) ExpectRounded(row);
      }
    }
  }
}

TEST_F(Int8RoundingTest, RowsOfOneSign) {
  ExpectRounded({1, 2, 3, 4});
  EXPECT_EQ(rounding_.zero, 0);
  ExpectRounded({-1, -2, -3, -4});
  EXPECT_EQ(rounding_.zero, 255);
  ExpectRounded({5});
  ExpectRounded({-5});
}

TEST_F(Int8RoundingTest, ZerosStayAndDoNotCount) {
  ExpectRounded(Floats(100, 0.0f));
  ExpectRounded(Floats(100, -0.0f));
  ExpectRounded({});
  Floats sparse(660, 0.0f);
  sparse[3] = 1;
  sparse[500] = -0.5f;
  ExpectRounded(sparse);
}

TEST_F(Int8RoundingTest, WhatIsNoNumberIsNotRounded) {
  for (const float value : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const size_t at : {0, 5, 15, 16, 19}) {
      Floats row(20, 1.0f);
      row[at] = value;
      EXPECT_FALSE(Round(row)) << value << " at " << at;
    }
  }
}

TEST_F(Int8RoundingTest, HugeNumbersAreRoundedWhereTheirRangeIsANumber) {
  ExpectRounded(Floats(20, kHuge));
  ExpectRounded({kHuge, kHuge / 2});
  EXPECT_FALSE(Round({kHuge, -kHuge}));
}

TEST_F(Int8RoundingTest, DenormalNumbersAreNotRounded) {
  EXPECT_FALSE(Round({kDenormal}));
  EXPECT_FALSE(Round({-kDenormal, kDenormal}));
  EXPECT_FALSE(Round({1e-38f, -1e-38f}));
}

TEST_F(Int8RoundingTest, ARowWhoseValuesAreMostlySmallIsNotRounded) {
  Floats row(100, 0.01f);
  ExpectRounded(row);
  row[7] = 1;  // two and a half steps are left of the others
  EXPECT_FALSE(Round(row));
  row[8] = -1;
  EXPECT_FALSE(Round(row));
  std::fill_n(row.begin(), 51, 0.5f);
  EXPECT_TRUE(Round(row));
}

TEST_F(Int8RoundingTest, WeightsAreRoundedInBothDirectionsAlike) {
  const Floats weights = {1, 9, -2, 9, 0, 9, 0.5f, 9};  // one every two floats
  int8_t rounded[4];
  float step;
  ASSERT_TRUE(RoundWeights(weights.data(), 4, 2, &step, rounded));
  EXPECT_EQ(step, 2.0f / 127);
  EXPECT_EQ(rounded[0], 64);  // of 63.5
  EXPECT_EQ(rounded[1], -127);
  EXPECT_EQ(rounded[2], 0);
  EXPECT_EQ(rounded[3], 32);  // of 31.75
}

TEST_F(Int8RoundingTest, WeightsThatWouldLoseTooMuch) {
  const auto round = [](const Floats& weights) {
    std::vector<int8_t> rounded(weights.size());
    float step;
    return RoundWeights(weights.data(), weights.size(), 1, &step, rounded.data());
  };
  EXPECT_TRUE(round(Floats(20, 0.0f)));
  EXPECT_TRUE(round(Floats(20, -3.0f)));
  for (const float value : {kNan, kInfinity, -kInfinity, 100.0f}) {
    Floats weights(20, 1.0f);
    weights[6] = value;
    EXPECT_FALSE(round(weights)) << value;
  }
  EXPECT_FALSE(round({kDenormal, kDenormal}));
}

}  // namespace
}  // namespace colcast::engine
