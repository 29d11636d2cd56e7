#include "server/request_log/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "server/inference/tfrecord.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::request_log {
namespace {

using tensorflow::serving::PredictionLog;

PredictionLog Logged(const LoggedCall& call) {
  PredictionLog log;
  EXPECT_TRUE(log.ParseFromString(MakePredictionLog(call, 0.5, 1'700'000'000)));
  return log;
}

TEST(PredictionLogTest, SaysWhoAnsweredAndWhen) {
  const PredictionLog log = Logged({"Predict", "movies", 7, "columnar", {}, {}});
  EXPECT_EQ(log.log_metadata().model_spec().name(), "movies");
  EXPECT_EQ(log.log_metadata().model_spec().version().value(), 7);
  EXPECT_EQ(log.log_metadata().model_spec().signature_name(), "columnar");
  EXPECT_EQ(log.log_metadata().sampling_config().sampling_rate(), 0.5);
  EXPECT_EQ(log.log_metadata().timestamp_secs(), 1'700'000'000);
}

TEST(PredictionLogTest, HoldsRequestAndResponseOfEachApi) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(std::string(300, 'm'));
  tensorflow::serving::PredictResponse response;
  response.mutable_model_spec()->set_signature_name("answered");
  const std::string sent = request.SerializeAsString(), answered = response.SerializeAsString();
  // In slices, as gRPC delivers messages.
  const Slice slices[] = {{reinterpret_cast<const uint8_t*>(sent.data()), 5},
                          {reinterpret_cast<const uint8_t*>(sent.data()) + 5, sent.size() - 5}};
  const PredictionLog log = Logged({"Predict", "m", 1, "s", Bytes(slices, 2), Bytes(answered)});
  EXPECT_EQ(log.predict_log().request().SerializeAsString(), sent);
  EXPECT_EQ(log.predict_log().response().SerializeAsString(), answered);
  EXPECT_TRUE(Logged({"Classify", "m", 1, "s", {}, {}}).has_classify_log());
  EXPECT_TRUE(Logged({"Regress", "m", 1, "s", {}, {}}).has_regress_log());
  EXPECT_TRUE(Logged({"MultiInference", "m", 1, "s", {}, {}}).has_multi_inference_log());
}

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using Strings = std::vector<std::string>;

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() { std::filesystem::create_directory(folder_); }
  ~LogFileTest() override { std::filesystem::remove_all(folder_); }

  std::string prefix() const { return folder_ / "log"; }

  Strings Files() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files.insert(entry.path());
    }
    return {files.begin(), files.end()};
  }

  // The records of each file.
  std::vector<Strings> Records() const {
    std::vector<Strings> all;
    for (const std::string& file : Files()) {
      inference::TfRecordReader reader(file);
      Strings records;
      std::string record;
      for (bool at_end = false;;) {
        const Status status = reader.Next(&record, &at_end);
        EXPECT_TRUE(status.ok()) << status.message;
        if (!status.ok() || at_end) break;
        records.push_back(record);
      }
      all.push_back(records);
    }
    return all;
  }

  const std::filesystem::path folder_ =
      testing::TempDir() + std::to_string(getpid()) +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(LogFileTest, RecordsAreThereAsSoonAsTheyAreWritten) {
  LogFile log(prefix(), 1000);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(log.Write("one").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"one"}));
  EXPECT_TRUE(log.Write("").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"one", ""}));
}

TEST_F(LogFileTest, NamesAreThePrefixTheTimeAndANumber) {
  LogFile one(prefix(), 1000), two(prefix(), 1000);
  EXPECT_TRUE(one.Write("one").ok());
  EXPECT_TRUE(two.Write("two").ok());
  const std::string pattern = prefix() + "-[0-9]{8}T[0-9]{6}Z-000[01]\\.tfrecord";
  EXPECT_THAT(Files(), ElementsAre(MatchesRegex(pattern), MatchesRegex(pattern)));
}

TEST_F(LogFileTest, ARecordThatWouldNotFitBeginsTheNextFile) {
  const std::string record(20, 'x');  // 36 bytes in the file
  LogFile log(prefix(), 80);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(log.Write(record).ok());
  EXPECT_THAT(Records(),
              ElementsAre(Strings{record, record}, Strings{record, record}, Strings{record}));
  EXPECT_TRUE(log.Write(std::string(100, 'y')).ok());
  EXPECT_EQ(Records().size(), 4u);
}

TEST_F(LogFileTest, AFolderThatIsNotThereIsNamedAndTriedAgain) {
  LogFile log(folder_ / "later" / "log", 1000);
  const Status status = log.Write("lost");
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr((folder_ / "later" / "log").string()));
  EXPECT_THAT(status.message, HasSubstr("No such file or directory"));
  std::filesystem::create_directory(folder_ / "later");
  EXPECT_TRUE(log.Write("kept").ok());
}

TEST_F(LogFileTest, AFileWhoseFirstRecordDoesNotFitDoesNotStay) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  LogFile log(prefix(), 1 << 20);
  rlimit limit = before;
  limit.rlim_cur = 40;
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(log.Write(std::string(100, 'x')).ok());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(log.Write("kept").ok());
}

TEST_F(LogFileTest, WhatDoesNotFitOnTheDiskLeavesNothingOfItself) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  LogFile log(prefix(), 1 << 20);
  EXPECT_TRUE(log.Write("kept").ok());
  rlimit limit = before;
  limit.rlim_cur = 40;
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = log.Write(std::string(100, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr("cannot be written: File too large"));
  EXPECT_THAT(Records(), ElementsAre(Strings{"kept"}));
  EXPECT_TRUE(log.Write("kept, too").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"kept"}, Strings{"kept, too"}));
}

}  // namespace
}  // namespace colcast::request_log
