#include "server/callers/callers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace colcast::callers {
namespace {

using std::chrono::nanoseconds;

class CallersTest : public testing::Test {
 protected:
  CallersTest() {
    std::ofstream(path_) << "quota { model: 'ranker' caller: 'batch' max_requests_in_flight: 1 "
                            "max_rows_per_second: 0.001 max_burst_rows: 10 }";
    Callers::Options options;
    options.quota_file = path_;
    const Status status = Callers::Create(options, &callers_);
    EXPECT_TRUE(status.ok()) << status.message;
  }
  ~CallersTest() override { std::filesystem::remove(path_); }

  CallerStats StatsOf(const std::string& caller) {
    for (const CallerStats& stats : callers_->Stats()) {
      if (stats.caller == caller) return stats;
    }
    return {};
  }

  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::unique_ptr<Callers> callers_;
};

TEST_F(CallersTest, RequestsOfACallerAreOneClients) {
  const CallerRequest one(callers_.get(), "batch"), same(callers_.get(), "batch"),
      other(callers_.get(), "feed"), nobody(callers_.get(), ""),
      no_name(callers_.get(), std::string(1000, 'x')), binary(callers_.get(), "caf\xc3\xa9");
  EXPECT_EQ(one.client(), same.client());
  EXPECT_NE(one.client(), other.client());
  EXPECT_NE(one.client(), 0);
  EXPECT_EQ(nobody.client(), 0);
  EXPECT_EQ(no_name.client(), 0);
  EXPECT_EQ(binary.client(), 0);
}

TEST_F(CallersTest, ARequestHoldsItsPlaceUntilItHasFinished) {
  CallerRequest first(callers_.get(), "batch");
  EXPECT_TRUE(first.Enter("ranker").ok());
  EXPECT_TRUE(first.Enter("ranker").ok());  // the same place
  CallerRequest second(callers_.get(), "batch");
  EXPECT_EQ(second.Enter("ranker").code, StatusCode::kResourceExhausted);
  first.Finish(0, {});
  CallerRequest third(callers_.get(), "batch");
  EXPECT_TRUE(third.Enter("ranker").ok());
}

TEST_F(CallersTest, AModelThatTurnsOutLaterIsLimitedThen) {
  CallerRequest first(callers_.get(), "batch"), second(callers_.get(), "batch");
  EXPECT_TRUE(first.Enter("").ok());
  EXPECT_TRUE(second.Enter("").ok());
  EXPECT_TRUE(first.Enter("ranker").ok());
  EXPECT_EQ(second.Enter("ranker").code, StatusCode::kResourceExhausted);
  EXPECT_EQ(second.Enter("ranker").code, StatusCode::kResourceExhausted);
  first.Finish(0, {});
  EXPECT_TRUE(second.Enter("ranker").ok());
  second.Finish(0, {});
  EXPECT_EQ(StatsOf("batch").refused[0], 0);  // it was answered in the end
}

TEST_F(CallersTest, RowsAreTakenOnceHoweverOftenARequestIsTried) {
  CallerRequest first(callers_.get(), "batch");
  ASSERT_TRUE(first.Enter("ranker").ok());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(first.TakeRows(6).ok());
  first.Finish(6, {});
  CallerRequest second(callers_.get(), "batch");
  ASSERT_TRUE(second.Enter("ranker").ok());
  EXPECT_TRUE(second.TakeRows(4).ok());
}

TEST_F(CallersTest, CountsWhatWasAskedAndRefused) {
  CallerRequest answered(callers_.get(), "batch");
  ASSERT_TRUE(answered.Enter("ranker").ok());
  ASSERT_TRUE(answered.TakeRows(8).ok());
  CallerRequest refused(callers_.get(), "batch");
  EXPECT_FALSE(refused.Enter("ranker").ok());
  refused.Finish(0, {});
  answered.Finish(8, nanoseconds(500));
  for (const int64_t rows : {11, 10}) {
    CallerRequest too_many(callers_.get(), "batch");
    ASSERT_TRUE(too_many.Enter("ranker").ok());
    EXPECT_FALSE(too_many.TakeRows(rows).ok());
    too_many.Finish(0, {});
  }
  const CallerStats stats = StatsOf("batch");
  EXPECT_EQ(stats.requests, 4);
  EXPECT_EQ(stats.rows, 8);
  EXPECT_EQ(stats.run_time, nanoseconds(500));
  for (int i = 0; i < kNumLimits; ++i) EXPECT_EQ(stats.refused[i], 1) << i;
}

TEST_F(CallersTest, AFileThatIsWrongIsSaid) {
  Callers::Options options;
  options.quota_file = path_ + " that is not there";
  std::unique_ptr<Callers> callers;
  EXPECT_EQ(Callers::Create(options, &callers).code, StatusCode::kNotFound);
  EXPECT_EQ(callers, nullptr);
}

}  // namespace
}  // namespace colcast::callers
