#include "server/callers/quota_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace colcast::callers {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

class QuotaConfigTest : public testing::Test {
 protected:
  ~QuotaConfigTest() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

  // How many requests a caller may have in flight.
  static int MostOf(Quotas* quotas) {
    std::vector<std::unique_ptr<Quotas::Place>> places;
    Limit limit{};
    while (places.size() < 10) {
      places.push_back(std::make_unique<Quotas::Place>());
      if (!quotas->Enter("batch", "ranker", places.back().get(), &limit).ok()) break;
    }
    return static_cast<int>(places.size()) - 1;
  }

  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(QuotaConfigTest, WhatIsNotGivenIsNotLimited) {
  Write(R"(
      quota { model: "m" caller: "c" max_requests_in_flight: 3 }
      quota { max_rows_per_second: 2.5 max_burst_rows: 7 })");
  std::vector<Quota> quotas;
  ASSERT_TRUE(ReadQuotaConfig(path_, &quotas).ok());
  ASSERT_EQ(quotas.size(), 2);
  EXPECT_EQ(quotas[0].model, "m");
  EXPECT_EQ(quotas[0].caller, "c");
  EXPECT_EQ(quotas[0].max_requests_in_flight, 3);
  EXPECT_FALSE(quotas[0].max_rows_per_second || quotas[0].max_burst_rows);
  EXPECT_FALSE(quotas[1].max_requests_in_flight);
  EXPECT_EQ(quotas[1].max_rows_per_second, 2.5);
  EXPECT_EQ(quotas[1].max_burst_rows, 7);
}

TEST_F(QuotaConfigTest, ErrorsNameTheFileAndThePlace) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"quota {\n  max_rows: 3 }", "line 2, column 11"},
      {"quota { max_requests_in_flight: many }", "many"},
      {"quota {} quota { model: 'm' max_requests_in_flight: 0 }",
       "quota 2 (model \"m\"): max_requests_in_flight: 0"},
  };
  for (const auto& one : kCases) {
    Write(one.text);
    std::vector<Quota> quotas;
    const Status status = ReadQuotaConfig(path_, &quotas);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message, AllOf(HasSubstr(path_), HasSubstr(one.message)));
  }
}

TEST_F(QuotaConfigTest, AFileThatCannotBeReadChangesNothing) {
  std::unique_ptr<Quotas> quotas;
  ASSERT_TRUE(Quotas::Create({}, TokenBucket::Clock::now, &quotas).ok());
  QuotaFile file(path_, milliseconds(0), quotas.get());
  Write("quota { max_requests_in_flight: 2 }");
  file.Look();
  EXPECT_EQ(MostOf(quotas.get()), 2);
  Write("quota { max_requests_in_flight: 0 }");
  file.Look();
  EXPECT_EQ(MostOf(quotas.get()), 2);
  std::filesystem::remove(path_);
  file.Look();
  EXPECT_EQ(MostOf(quotas.get()), 2);
  Write("quota { max_requests_in_flight: 5 }");
  file.Look();
  EXPECT_EQ(MostOf(quotas.get()), 5);
}

}  // namespace
}  // namespace colcast::callers
