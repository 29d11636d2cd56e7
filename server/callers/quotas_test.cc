#include "server/callers/quotas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace colcast::callers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Quota InFlight(const std::string& model, const std::string& caller, int64_t most) {
  Quota quota;
  quota.model = model;
  quota.caller = caller;
  quota.max_requests_in_flight = most;
  return quota;
}

Quota Rows(const std::string& model, const std::string& caller, double rate, int64_t burst) {
  Quota quota;
  quota.model = model;
  quota.caller = caller;
  quota.max_rows_per_second = rate;
  quota.max_burst_rows = burst;
  return quota;
}

class QuotasTest : public testing::Test {
 protected:
  void Make(std::vector<Quota> quotas) {
    const Status status = Quotas::Create(
        std::move(quotas), [this] { return now_; }, &quotas_);
    ASSERT_TRUE(status.ok()) << status.message;
  }

  // Its place is held until the test ends.
  Status Enter(const std::string& caller, const std::string& model) {
    return quotas_->Enter(caller, model, &places_.emplace_back(), &limit_);
  }

  // A request that is answered at once.
  Status Ask(const std::string& caller, const std::string& model, int64_t rows) {
    Quotas::Place place;
    Status status = quotas_->Enter(caller, model, &place, &limit_);
    return status.ok() ? quotas_->TakeRows(place, rows, &limit_) : status;
  }

  Quotas::Time now_{seconds(1000)};
  Limit limit_{};
  std::unique_ptr<Quotas> quotas_;
  std::list<Quotas::Place> places_;
};

TEST_F(QuotasTest, WithoutAQuotaNothingIsLimitedNorKept) {
  Make({InFlight("ranker", "batch", 1)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Enter("feed", "ranker").ok());
    EXPECT_TRUE(Ask("batch", "other", int64_t{1} << 40).ok());
  }
  EXPECT_EQ(quotas_->size(), 0);
}

TEST_F(QuotasTest, RequestsInFlightAreThoseNotYetAnswered) {
  Make({InFlight("ranker", "batch", 2)});
  EXPECT_TRUE(Enter("batch", "ranker").ok());
  EXPECT_TRUE(Enter("batch", "ranker").ok());
  const Status status = Enter("batch", "ranker");
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(limit_, Limit::kRequestsInFlight);
  EXPECT_EQ(status.message,
            "caller \"batch\" may have 2 requests to model \"ranker\" in flight, and one more than "
            "these came (max_requests_in_flight of --quota_config_file); try again when one of "
            "them is answered");
  places_.pop_front();
  EXPECT_TRUE(Enter("batch", "ranker").ok());
}

TEST_F(QuotasTest, APlaceThatIsTakenAnewIsGivenBackFirst) {
  Make({InFlight("", "", 1)});
  Quotas::Place place;
  EXPECT_TRUE(quotas_->Enter("batch", "", &place, &limit_).ok());
  EXPECT_TRUE(quotas_->Enter("batch", "ranker", &place, &limit_).ok());
  EXPECT_TRUE(Enter("batch", "").ok());
  EXPECT_FALSE(Enter("batch", "ranker").ok());
}

TEST_F(QuotasTest, RowsComeBackAtTheRate) {
  Make({Rows("ranker", "batch", 100, 250)});
  EXPECT_TRUE(Ask("batch", "ranker", 200).ok());
  EXPECT_TRUE(Ask("batch", "ranker", 40).ok());
  const Status status = Ask("batch", "ranker", 30);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(limit_, Limit::kRowsPerSecond);
  EXPECT_EQ(status.message,
            "caller \"batch\" may send 100 rows per second to model \"ranker\", of which 10 are "
            "left, and a request has 30 (max_rows_per_second of --quota_config_file); try again "
            "in 200 ms");
  now_ += milliseconds(199);
  EXPECT_FALSE(Ask("batch", "ranker", 30).ok());
  now_ += milliseconds(2);
  EXPECT_TRUE(Ask("batch", "ranker", 30).ok());
}

TEST_F(QuotasTest, MoreRowsThanABurstAreNeverThere) {
  Make({Rows("ranker", "batch", 100, 250)});
  const Status status = Ask("batch", "ranker", 251);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(limit_, Limit::kBurstRows);
  EXPECT_EQ(status.message,
            "caller \"batch\" may send 250 rows to model \"ranker\" at once, and a request has 251 "
            "(max_burst_rows of --quota_config_file); send smaller requests");
  EXPECT_TRUE(Ask("batch", "ranker", 250).ok());  // nothing was taken
}

TEST_F(QuotasTest, ABurstIsASecondsRowsUnlessToldOtherwise) {
  Quota quota;
  quota.max_rows_per_second = 1'000'000;
  Make({quota});
  EXPECT_TRUE(Ask("", "ranker", 1'000'000).ok());
  EXPECT_THAT(Ask("", "ranker", 1'000'001).message,
              AllOf(HasSubstr("callers without a name may send 1000000 rows"),
                    HasSubstr("(max_rows_per_second of")));
  quota.max_rows_per_second = 0.5;
  Make({quota});
  EXPECT_TRUE(Ask("", "ranker", 1).ok());
  EXPECT_THAT(Ask("", "ranker", 1).message,
              AllOf(HasSubstr("0.5 rows per second"), HasSubstr("try again in 2000 ms")));
}

TEST_F(QuotasTest, TheQuotaThatSaysMostCounts) {
  Make({InFlight("ranker", "batch", 1), InFlight("", "batch", 2), InFlight("ranker", "", 3),
        InFlight("", "", 4)});
  const struct {
    const char* caller;
    const char* model;
    int most;
  } kCases[] = {
      {"batch", "ranker", 1}, {"batch", "other", 2}, {"batch", "", 2}, {"feed", "ranker", 3},
      {"feed", "other", 4},   {"", "ranker", 3},     {"", "", 4},      {"ads", "ranker", 3}};
  for (const auto& one : kCases) {
    int entered = 0;
    while (entered < 10 && Enter(one.caller, one.model).ok()) ++entered;
    EXPECT_EQ(entered, one.most) << one.caller << " " << one.model;
  }
}

TEST_F(QuotasTest, AQuotaWithoutLimitsLiftsOthers) {
  Quota unlimited;
  unlimited.caller = "feed";
  Make({InFlight("", "", 1), unlimited});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Enter("feed", "ranker").ok());
  EXPECT_TRUE(Enter("batch", "ranker").ok());
  EXPECT_FALSE(Enter("batch", "ranker").ok());
}

TEST_F(QuotasTest, NamesThatClientsMakeUpTakeBoundedMemoryAndShareALimitBeyond) {
  Make({InFlight("", "", 2), InFlight("", "feed", 2)});
  for (size_t i = 0; i < Quotas::kMaxUnnamed; ++i) {
    ASSERT_TRUE(Enter("made up " + std::to_string(i), "ranker").ok());
  }
  EXPECT_TRUE(Enter("one more", "ranker").ok());
  EXPECT_TRUE(Enter("another", "ranker").ok());
  const Status status = Enter("and another", "ranker");
  EXPECT_THAT(status.message, HasSubstr("the callers that no quota names, together, may have 2 "));
  EXPECT_EQ(quotas_->size(), Quotas::kMaxUnnamed + 1);
  EXPECT_TRUE(Enter("made up 7", "ranker").ok());
  EXPECT_TRUE(Enter("feed", "ranker").ok());  // has its own
  EXPECT_EQ(quotas_->size(), Quotas::kMaxUnnamed + 2);
}

TEST_F(QuotasTest, CallersWithNothingInFlightAndAllTheirRowsAreForgotten) {
  Make({Rows("", "", 10, 10)});
  for (size_t i = 0; i < 10 * Quotas::kMaxUnnamed; ++i) {
    ASSERT_TRUE(Ask("made up " + std::to_string(i), "ranker", 0).ok());
    if (i % 100 == 0) now_ += seconds(2);
  }
  EXPECT_LE(quotas_->size(), Quotas::kMaxUnnamed + 1);
  // One that has used its rows is not.
  Make({Rows("", "", 10, 10)});
  ASSERT_TRUE(Ask("batch", "ranker", 10).ok());
  now_ += milliseconds(500);
  for (size_t i = 0; i < 2 * Quotas::kMaxUnnamed; ++i) {
    ASSERT_TRUE(Ask("made up " + std::to_string(i), "ranker", 0).ok());
  }
  EXPECT_FALSE(Ask("batch", "ranker", 10).ok());
  EXPECT_TRUE(Ask("batch", "ranker", 4).ok());
}

TEST_F(QuotasTest, NewQuotasCountWhatIsInFlightAndWhatRowsAreLeft) {
  Quota both = Rows("ranker", "batch", 1, 10);
  both.max_requests_in_flight = 5;
  Make({both});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Enter("batch", "ranker").ok());
  ASSERT_TRUE(Ask("batch", "ranker", 8).ok());
  both.max_requests_in_flight = 3;
  both.max_rows_per_second = 2;
  ASSERT_TRUE(quotas_->Set({both}).ok());
  EXPECT_FALSE(Enter("batch", "ranker").ok());
  places_.pop_front();
  EXPECT_FALSE(Ask("batch", "ranker", 3).ok());
  EXPECT_TRUE(Ask("batch", "ranker", 2).ok());
  ASSERT_TRUE(quotas_->Set({}).ok());
  EXPECT_TRUE(Ask("batch", "ranker", 1000).ok());
  EXPECT_EQ(quotas_->size(), 0);
  places_.clear();  // of a quota that is gone
}

TEST_F(QuotasTest, WrongQuotasChangeNothing) {
  Make({InFlight("", "", 1)});
  EXPECT_FALSE(quotas_->Set({InFlight("", "", 0)}).ok());
  EXPECT_TRUE(Enter("batch", "ranker").ok());
  EXPECT_FALSE(Enter("batch", "ranker").ok());
}

TEST(CheckQuotasTest, ErrorsNameTheQuotaTheFieldAndTheValue) {
  Quota burst_alone;
  burst_alone.max_burst_rows = 7;
  const struct {
    Quota quota;
    const char* message;
  } kCases[] = {
      {InFlight("m", "c", 0),
       "quota 2 (model \"m\", caller \"c\"): max_requests_in_flight: 0, expected 1 or more"},
      {InFlight("m", "", -3), "quota 2 (model \"m\"): max_requests_in_flight: -3"},
      {Rows("", "c", 0, 1),
       "quota 2 (caller \"c\"): max_rows_per_second: 0, expected a number over 0"},
      {Rows("", "", std::numeric_limits<double>::infinity(), 1), "max_rows_per_second: inf"},
      {Rows("m", "", std::numeric_limits<double>::quiet_NaN(), 1), "max_rows_per_second: nan"},
      {Rows("m", "", 1, 0), "max_burst_rows: 0, expected 1 or more"},
      {burst_alone, "max_burst_rows: 7 without max_rows_per_second"},
      {InFlight("m", "c\n", 1), "caller: expected at most 128 characters of printable ASCII"},
      {InFlight("m", std::string(129, 'c'), 1), "caller: expected at most 128"},
      {InFlight("first", "", 9), "quota 1 has the same caller and model"},
  };
  for (const auto& one : kCases) {
    const Status status = CheckQuotas({InFlight("first", "", 1), one.quota});
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << one.message;
    EXPECT_THAT(status.message, HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace colcast::callers
