#include "server/engine/rewrites/graph_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using ::testing::HasSubstr;

Tensor Floats(const std::vector<float>& values) {
  Tensor tensor(tensorflow::DT_FLOAT, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

// Scores 0, 1, 2, ... of so many rows.
Trial Rising(int64_t rows) {
  std::vector<float> scores;
  for (int64_t i = 0; i < rows; ++i) scores.push_back(static_cast<float>(i));
  return {{rows, {Floats(scores)}}, {Floats(scores)}, false};
}

// A graph of one input that changes each value.
GraphRun Each(float (*change)(float)) {
  return [change](const Tensors& feeds, Tensors* outputs) {
    Tensor changed(feeds[0].dtype(), feeds[0].shape());
    const auto from = feeds[0].flat<float>();
    for (int64_t i = 0; i < from.size(); ++i) changed.flat<float>()(i) = change(from(i));
    outputs->push_back(changed);
    return absl::OkStatus();
  };
}

const HasTime kAnyTime = [](double) { return true; };

const GraphRun kSame = Each([](float score) { return score; });

TEST(SameBits, AreWhatTheOriginalHas) {
  const Proof proof = ProveSameBits({Rising(1), Rising(20)}, kSame, kSame, kAnyTime);
  EXPECT_TRUE(proof.holds);
  EXPECT_EQ(proof.says, "the same bits in 2 requests");
}

TEST(SameBits, OneBitIsEnoughToFail) {
  const auto close = Each([](float score) { return std::nextafter(score, 100.0f); });
  const Proof proof = ProveSameBits({Rising(20)}, kSame, close, kAnyTime);
  EXPECT_FALSE(proof.holds);
  EXPECT_EQ(proof.says, "a generated request of 20 rows has other bits");
}

TEST(SameBits, ANaNMayBeAnyButNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Trial trial = {{1, {Floats({nan})}}, {Floats({nan})}, true};
  EXPECT_TRUE(ProveSameBits({trial}, kSame, Each([](float) { return -NAN; }), kAnyTime).holds);
  EXPECT_FALSE(ProveSameBits({trial}, kSame, Each([](float) { return 0.0f; }), kAnyTime).holds);
}

TEST(SameBits, ZerosSignCounts) {
  const Trial trial = {{1, {Floats({0})}}, {Floats({0})}, true};
  EXPECT_FALSE(ProveSameBits({trial}, kSame, Each([](float) { return -0.0f; }), kAnyTime).holds);
}

TEST(SameBits, AnErrorOfTheRewrittenGraphFails) {
  const auto fails = [](const Tensors&, Tensors*) { return absl::InternalError("it broke"); };
  EXPECT_THAT(ProveSameBits({Rising(2)}, kSame, fails, kAnyTime).says,
              HasSubstr("failed: it broke"));
}

TEST(SameBits, NothingIsProvedWithoutARequest) {
  EXPECT_FALSE(ProveSameBits({}, kSame, kSame, kAnyTime).holds);
}

// Answers `first` and `second` in turn.
GraphRun InTurn(float first, float second) {
  return [=, runs = 0](const Tensors&, Tensors* outputs) mutable {
    outputs->push_back(Floats({runs++ % 2 == 0 ? first : second}));
    return absl::OkStatus();
  };
}

TEST(SameBits, WhereTheOriginalVariesOneOfItsAnswersMustCome) {
  const Trial trial = {{1, {Floats({1})}}, {Floats({1})}, true};
  EXPECT_TRUE(ProveSameBits({trial}, InTurn(1, 2), InTurn(2, 2), kAnyTime).holds);
  EXPECT_FALSE(ProveSameBits({trial}, InTurn(1, 2), InTurn(3, 3), kAnyTime).holds);
  EXPECT_FALSE(ProveSameBits({trial}, InTurn(1, 1), InTurn(2, 1), kAnyTime).holds);
}

TEST(Close, SaysHowFarTheLargestDifferenceIs) {
  const auto close = Each([](float score) { return score == 7 ? 7.01f : score; });
  const Proof proof = ProveClose({Rising(20)}, close, 0.001, kAnyTime);
  EXPECT_TRUE(proof.holds);
  EXPECT_THAT(proof.says, HasSubstr("differences up to 0.00053"));
  EXPECT_FALSE(ProveClose({Rising(20)}, close, 0.0005, kAnyTime).holds);
}

TEST(Close, OneOfManyIsEnoughToFail) {
  const auto one = Each([](float score) { return score == 250 ? 300.0f : score; });
  EXPECT_FALSE(ProveClose({Rising(500)}, one, 0.01, kAnyTime).holds);
}

TEST(Close, TheBestMustStayTheBest) {
  // Less than a hundredth of the largest: the order of neighbours in pairs of four.
  const auto turned = Each([](float score) { return score + 3 - 2 * std::fmod(score, 4.0f); });
  const Proof proof = ProveClose({Rising(500)}, turned, 0.01, kAnyTime);
  EXPECT_THAT(proof.says, HasSubstr("top-10 overlap 0.80"));
  EXPECT_FALSE(proof.holds);
}

TEST(Close, NumbersThatAreNoneMustStay) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Trial trial = {{1, {Floats({infinity})}}, {Floats({infinity})}, true};
  EXPECT_TRUE(ProveClose({trial}, kSame, 0.01, kAnyTime).holds);
  EXPECT_FALSE(ProveClose({trial}, Each([](float) { return 1e30f; }), 0.01, kAnyTime).holds);
}

TEST(Close, IntegersMustBeTheSame) {
  Tensor one(tensorflow::DT_INT64, {1}), other(tensorflow::DT_INT64, {1});
  one.flat<int64_t>()(0) = 1000;
  other.flat<int64_t>()(0) = 1001;
  const auto answers = [other](const Tensors&, Tensors* outputs) {
    outputs->push_back(other);
    return absl::OkStatus();
  };
  EXPECT_FALSE(ProveClose({{{1, {one}}, {one}, true}}, answers, 0.01, kAnyTime).holds);
}

TEST(Close, ARowMustNotDependOnHowManyRunWithIt) {
  // Half a percent more for every row of a larger run: within the tolerance of the original.
  const auto grows = [](const Tensors& feeds, Tensors* outputs) {
    const bool many = feeds[0].NumElements() > 20;
    return Each(many ? [](float score) { return score * 1.008f; }
                     : [](float score) { return score * 0.992f; })(feeds, outputs);
  };
  const std::vector<Trial> trials = {Rising(20), Rising(100)};
  EXPECT_FALSE(ProveClose(trials, grows, 0.01, kAnyTime).holds);
  EXPECT_TRUE(ProveClose({Rising(20)}, grows, 0.01, kAnyTime).holds);
  EXPECT_TRUE(ProveClose({Rising(100)}, grows, 0.01, kAnyTime).holds);
}

TEST(Proof, WhatTheOriginalRefusesMustBeRefused) {
  const std::vector<Refused> refused = {{Rising(2).feeds, absl::StatusCode::kInvalidArgument}};
  const GraphRun refuses = [](const Tensors&, Tensors*) {
    return absl::InvalidArgumentError("no such row");
  };
  Proof proof{true, "the same bits in 6 requests"};
  ProveRefusals(refused, refuses, &proof);
  EXPECT_TRUE(proof.holds);
  ProveRefusals(refused, kSame, &proof);
  EXPECT_FALSE(proof.holds);
  EXPECT_EQ(proof.says, "ids that are no rows: INVALID_ARGUMENT became OK");
}

TEST(Proof, NothingIsRunForWhichThereIsNoTime) {
  Trial slow = Rising(20);
  slow.seconds = 30;
  int runs = 0;
  const GraphRun counts = [&runs](const Tensors& feeds, Tensors* outputs) {
    ++runs;
    return kSame(feeds, outputs);
  };
  const HasTime a_second = [](double seconds) { return seconds <= 1; };
  for (const Proof& proof : {ProveSameBits({Rising(1), slow}, kSame, counts, a_second),
                             ProveClose({Rising(1), slow}, counts, 0.01, a_second)}) {
    EXPECT_FALSE(proof.holds);
    EXPECT_EQ(proof.says, "no time to run a generated request of 20 rows, 30 s");
  }
  EXPECT_EQ(runs, 2);  // of the other trial
}

}  // namespace
}  // namespace colcast::engine
