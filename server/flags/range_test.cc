#include "server/flags/range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

ABSL_FLAG(int64_t, test_bytes, 0, "a whole number");
ABSL_FLAG(double, test_seconds, 0, "a number");

namespace colcast::flags {
namespace {

using ::testing::HasSubstr;

Status CheckBytes(int64_t bytes) {
  absl::SetFlag(&FLAGS_test_bytes, bytes);
  return CheckRanges({{FLAGS_test_bytes, 1, 8}});
}

TEST(RangeTest, BordersBelongToTheRange) {
  EXPECT_TRUE(CheckBytes(1).ok());
  EXPECT_TRUE(CheckBytes(8).ok());
}

TEST(RangeTest, NamesTheFlagItsValueAndTheBorder) {
  EXPECT_EQ(CheckBytes(0).message, "--test_bytes=0: expected at least 1");
  EXPECT_EQ(CheckBytes(12345678).message, "--test_bytes=12345678: expected at most 8");
}

TEST(RangeTest, WhatIsNoFiniteNumberIsOutside) {
  absl::SetFlag(&FLAGS_test_seconds, std::nan(""));
  EXPECT_THAT(CheckRanges({{FLAGS_test_seconds, 0}}).message, HasSubstr("--test_seconds=nan"));
  absl::SetFlag(&FLAGS_test_seconds, INFINITY);
  EXPECT_THAT(CheckRanges({{FLAGS_test_seconds, 0}}).message, HasSubstr("finite"));
}

TEST(RangeTest, TheFirstOneOutsideIsNamed) {
  absl::SetFlag(&FLAGS_test_bytes, 0);
  absl::SetFlag(&FLAGS_test_seconds, -1);
  EXPECT_THAT(CheckRanges({{FLAGS_test_bytes, 0}, {FLAGS_test_seconds, 0}}).message,
              HasSubstr("test_seconds=-1"));
}

}  // namespace
}  // namespace colcast::flags
