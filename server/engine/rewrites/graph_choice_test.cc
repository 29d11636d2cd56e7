#include "server/engine/rewrites/graph_choice.h"

#include <gtest/gtest.h>

namespace colcast::engine {
namespace {

const Proof kHolds = {true, "the same bits in 9 requests"};

// Shares at 20, 100 and 500 rows.
Candidate Taking(const std::vector<double>& shares, Proof proof = kHolds, double spread = 0.02) {
  Candidate candidate{"2 lookups run as one op", std::move(proof), {}};
  constexpr int64_t kRows[] = {20, 100, 500};
  for (size_t i = 0; i < shares.size(); ++i) {
    candidate.measured.push_back({kRows[i], 0.001, shares[i], spread, 9});
  }
  return candidate;
}

TEST(ChooseGraph, TheFastestIsKept) {
  const Choice choice = ChooseGraph({Taking({0.8, 0.8, 0.8}), Taking({0.7, 0.8, 0.8})});
  EXPECT_EQ(choice.candidate, 1);
}

TEST(ChooseGraph, WhatLosesAnywhereIsNot) {
  EXPECT_EQ(ChooseGraph({Taking({0.5, 0.5, 1.04})}).candidate, -1);
  EXPECT_EQ(ChooseGraph({Taking({1.02, 0.5, 0.5})}).candidate, 0);
}

TEST(ChooseGraph, WhatGainsLittleIsNot) {
  EXPECT_EQ(ChooseGraph({Taking({0.98, 0.98, 0.98})}).candidate, -1);
}

TEST(ChooseGraph, WhatGainsNoMoreThanTheFiguresSpreadIsNot) {
  EXPECT_EQ(ChooseGraph({Taking({0.91, 0.92, 0.90}, kHolds, 0.2)}).candidate, -1);
  EXPECT_EQ(ChooseGraph({Taking({0.71, 0.72, 0.70}, kHolds, 0.2)}).candidate, 0);
}

TEST(ChooseGraph, WhatIsNotProvedIsNot) {
  const Choice choice = ChooseGraph({Taking({0.1, 0.1, 0.1}, {false, "it has other bits"})});
  EXPECT_EQ(choice.candidate, -1);
  EXPECT_EQ(choice.why, "2 lookups run as one op (not kept: not proved: it has other bits)");
}

TEST(ChooseGraph, WhatIsNotMeasuredIsNot) {
  const Choice choice = ChooseGraph({Taking({})});
  EXPECT_EQ(choice.candidate, -1);
  EXPECT_EQ(choice.why,
            "2 lookups run as one op (not kept: not measured; the same bits in 9 requests)");
}

TEST(ChooseGraph, SaysWhatWasMeasured) {
  EXPECT_EQ(ChooseGraph({Taking({0.71, 0.8})}).why,
            "2 lookups run as one op (0.71±0.02 of 1 ms at 20 rows, 0.80±0.02 of 1 ms at 100 "
            "rows; the same bits in 9 requests)");
}

}  // namespace
}  // namespace colcast::engine
