#include "server/request_log/logging_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace colcast::request_log {
namespace {

using testing::HasSubstr;

class LoggingConfigTest : public testing::Test {
 protected:
  Status Check(const std::string& text) {
    tensorflow::serving::LoggingConfig proto;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
    return CheckLoggingConfig(proto, places_, &config_);
  }

  // Checks a configuration that logs everything to `prefix`.
  Status CheckPrefix(const std::string& prefix) {
    tensorflow::serving::LoggingConfig proto;
    proto.mutable_sampling_config()->set_sampling_rate(1);
    proto.mutable_log_collector_config()->set_filename_prefix(prefix);
    return CheckLoggingConfig(proto, places_, &config_);
  }

  LogPlaces places_{"", /*anywhere=*/true};
  LoggingConfig config_;
};

TEST_F(LoggingConfigTest, ReadsRateAndPrefix) {
  for (const char* type : {"", R"(type: "file")"}) {
    const Status status = Check("log_collector_config { " + std::string(type) +
                                R"( filename_prefix: "/var/log/a" } )"
                                "sampling_config { sampling_rate: 0.25 }");
    EXPECT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(config_, (LoggingConfig{0.25, "/var/log/a"}));
  }
}

TEST_F(LoggingConfigTest, ARateOfZeroNeedsNoCollector) {
  EXPECT_TRUE(Check("").ok());
  EXPECT_TRUE(Check(R"(log_collector_config { type: "other" })").ok());
  EXPECT_EQ(config_.sampling_rate, 0);
}

TEST_F(LoggingConfigTest, RefusesInvalidRatesCollectorsAndPrefixes) {
  const std::string all = "sampling_config { sampling_rate: 1 } ";
  const std::string prefix = R"(log_collector_config { filename_prefix: "/a" } )";
  const std::pair<std::string, const char*> kCases[] = {
      {prefix + "sampling_config { sampling_rate: -0.1 }", "sampling_rate is -0.1"},
      {prefix + "sampling_config { sampling_rate: 1.5 }", "sampling_rate is 1.5"},
      {prefix + "sampling_config { sampling_rate: nan }", "sampling_rate is nan"},
      {all + R"(log_collector_config { type: "kafka" filename_prefix: "/a" })", "\"kafka\""},
      {all, "filename_prefix is \"\""},
      {all + R"(log_collector_config { filename_prefix: "logs/a" })",
       "filename_prefix is \"logs/a\""},
  };
  for (const auto& [text, error] : kCases) {
    const Status status = Check(text);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message, HasSubstr(error));
  }
}

TEST_F(LoggingConfigTest, RefusesPrefixesWithControlCharactersOrDotDot) {
  using std::string_literals::operator""s;
  for (const LogPlaces& places : {LogPlaces{"", true}, LogPlaces{"/logs", false}}) {
    places_ = places;
    for (const std::string& prefix : {"/logs/a\0b"s, "/logs/a\n"s, "/logs/\x7f"s, "/logs/../etc/a"s,
                                      "/logs/.."s, "/logs/b/../a"s}) {
      const Status status = CheckPrefix(prefix);
      EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << prefix;
      EXPECT_THAT(status.message, HasSubstr("control characters")) << prefix;
    }
    EXPECT_TRUE(CheckPrefix("/logs/a..b").ok());
  }
}

TEST_F(LoggingConfigTest, PrefixesMustLieBelowTheLogDirectory) {
  for (const char* directory : {"/logs", "/logs/", "/x/../logs"}) {
    places_ = {directory, true};
    EXPECT_TRUE(CheckPrefix("/logs/a").ok());
    EXPECT_EQ(config_.filename_prefix, "/logs/a");
    EXPECT_TRUE(CheckPrefix("//logs/./b/a").ok());
    EXPECT_TRUE(CheckPrefix("b/a").ok());
    for (const char* prefix : {"/log/a", "/logs", "/logsa", "/a", "/", ""}) {
      const Status status = CheckPrefix(prefix);
      EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << prefix;
      EXPECT_THAT(status.message, HasSubstr("a path below --request_log_directory")) << prefix;
    }
  }
  places_ = {"/logs", false};
  EXPECT_TRUE(CheckPrefix("a").ok());
  EXPECT_EQ(config_.filename_prefix, "/logs/a");
}

TEST_F(LoggingConfigTest, LoggingIsRefusedIfNoPathIsAllowed) {
  places_ = {};
  const Status status = CheckPrefix("/logs/a");
  EXPECT_EQ(status.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message, HasSubstr("--request_log_directory"));
  EXPECT_TRUE(Check("").ok());
}

}  // namespace
}  // namespace colcast::request_log
