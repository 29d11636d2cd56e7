#include "server/metrics/recent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace colcast::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class RecentTest : public testing::Test {
 protected:
  void Answer(int requests, const char* signature = "late",
              microseconds latency = microseconds(100), StatusCode code = StatusCode::kOk) {
    CallRecord record;
    record.model_name = "a";
    record.signature_name = signature;
    record.latency = latency;
    record.code = code;
    record.expansion = {500, 10, 1000};
    for (int i = 0; i < requests; ++i) metrics_.Record(record);
  }
  // Advances the clock, then adds a sample.
  void Sample(milliseconds after = seconds(1), double cpu_seconds = 0) {
    now_ += after;
    recent_.Add(now_, metrics_.Requests(), cpu_seconds);
  }

  Metrics metrics_;
  Recent recent_;
  Recent::Time now_{};
};

TEST_F(RecentTest, NothingIsKnownBeforeTheSecondSample) {
  EXPECT_EQ(recent_.Last(seconds(10)).seconds, 0);
  Answer(5);
  Sample();
  EXPECT_EQ(recent_.Last(seconds(10)).seconds, 0);
  EXPECT_TRUE(recent_.Last(seconds(10)).requests.empty());
}

TEST_F(RecentTest, WhatWasBeforeTheIntervalIsNotInIt) {
  Answer(1000);
  Sample();
  for (int i = 0; i < 20; ++i) {
    Answer(i < 10 ? 50 : 7);
    Sample();
  }
  const Recent::Interval ten = recent_.Last(seconds(10));
  EXPECT_DOUBLE_EQ(ten.seconds, 10);
  ASSERT_EQ(ten.requests.size(), 1u);
  EXPECT_EQ(ten.requests[0].answered, 70);
  EXPECT_EQ(ten.requests[0].rows, 70 * 500);
  EXPECT_EQ(ten.requests[0].bytes_saved, 70 * 1000);
  EXPECT_EQ(recent_.Last(seconds(60)).requests[0].answered, 570);
}

TEST_F(RecentTest, QuantilesAreOfTheIntervalOnly) {
  Sample();
  Answer(1000, "late", milliseconds(500));
  Sample();
  Answer(10, "late", microseconds(90));
  Sample();
  EXPECT_NEAR(recent_.Last(seconds(1)).requests[0].latency.Quantile(0.99), 90, 15);
  EXPECT_NEAR(recent_.Last(seconds(2)).requests[0].latency.Quantile(0.99), 500'000, 80'000);
}

TEST_F(RecentTest, ErrorsAreCountedButHaveNoLatency) {
  Sample();
  Answer(3);
  Answer(2, "late", microseconds(1), StatusCode::kInvalidArgument);
  Sample();
  const Recent::Interval interval = recent_.Last(seconds(10));
  EXPECT_EQ(interval.requests[0].answered, 5);
  EXPECT_EQ(interval.requests[0].failed, 2);
  EXPECT_EQ(interval.requests[0].latency.Count(), 3);
}

TEST_F(RecentTest, ASeriesThatBeginsWithinTheIntervalCountsFromZero) {
  Answer(8, "m");
  Sample();
  Answer(3, "b");
  Answer(4, "z");
  Answer(1, "m");
  Sample();
  const Recent::Interval interval = recent_.Last(seconds(10));
  ASSERT_EQ(interval.requests.size(), 3u);
  EXPECT_EQ(interval.requests[0].answered, 3);
  EXPECT_EQ(interval.requests[1].answered, 1);
  EXPECT_EQ(interval.requests[2].answered, 4);
}

TEST_F(RecentTest, RatesAreByTheTimeThatPassed) {
  Sample(seconds(1), 10.0);
  Answer(10);
  Sample(seconds(1), 10.5);
  Answer(10);
  Sample(milliseconds(500), 10.75);
  EXPECT_THAT(recent_.Rates(), ElementsAre(10, 20));
  EXPECT_DOUBLE_EQ(recent_.Last(seconds(60)).seconds, 1.5);
  EXPECT_DOUBLE_EQ(recent_.Last(seconds(60)).cpu_seconds, 0.75);
}

TEST_F(RecentTest, AMinuteIsKeptHoweverLongItRuns) {
  for (int i = 0; i < 500; ++i) {
    Answer(1);
    Sample();
  }
  EXPECT_EQ(recent_.Rates().size(), 60u);
  EXPECT_EQ(recent_.Last(seconds(3600)).requests[0].answered, 60);
}

}  // namespace
}  // namespace colcast::metrics
