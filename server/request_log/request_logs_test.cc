#include "server/request_log/request_logs.h"

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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using Strings = std::vector<std::string>;

PredictionLog LogOf(const LoggedCall& call) {
  PredictionLog log;
  EXPECT_TRUE(log.ParseFromString(MakePredictionLog(call, 0.5, 1'700'000'000)));
  return log;
}

TEST(PredictionLogTest, ContainsRequestResponseAndMetadata) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(std::string(300, 'm'));
  tensorflow::serving::PredictResponse response;
  response.mutable_model_spec()->set_signature_name("answered");
  const std::string sent = request.SerializeAsString(), answered = response.SerializeAsString();
  // A message may arrive in slices.
  const Slice slices[] = {{reinterpret_cast<const uint8_t*>(sent.data()), 5},
                          {reinterpret_cast<const uint8_t*>(sent.data()) + 5, sent.size() - 5}};
  const PredictionLog log = LogOf({"Predict", "m", 7, "s", Bytes(slices, 2), Bytes(answered)});
  EXPECT_EQ(log.log_metadata().model_spec().name(), "m");
  EXPECT_EQ(log.log_metadata().model_spec().version().value(), 7);
  EXPECT_EQ(log.log_metadata().model_spec().signature_name(), "s");
  EXPECT_EQ(log.log_metadata().sampling_config().sampling_rate(), 0.5);
  EXPECT_EQ(log.log_metadata().timestamp_secs(), 1'700'000'000);
  EXPECT_EQ(log.predict_log().request().SerializeAsString(), sent);
  EXPECT_EQ(log.predict_log().response().SerializeAsString(), answered);
  EXPECT_TRUE(LogOf({"Classify", "m", 1, "s", {}, {}}).has_classify_log());
  EXPECT_TRUE(LogOf({"Regress", "m", 1, "s", {}, {}}).has_regress_log());
  EXPECT_TRUE(LogOf({"MultiInference", "m", 1, "s", {}, {}}).has_multi_inference_log());
}

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() { std::filesystem::create_directory(folder_); }
  ~LogFileTest() override { std::filesystem::remove_all(folder_); }

  std::string prefix(const std::string& name) const { return folder_ / name; }

  // The files whose name begins with `name`.
  Strings Files(const std::string& name = "") const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename().string().rfind(name, 0) == 0) files.insert(entry.path());
    }
    return {files.begin(), files.end()};
  }

  // The records of each file.
  std::vector<Strings> Records(const std::string& name = "") const {
    std::vector<Strings> all;
    for (const std::string& file : Files(name)) {
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

TEST_F(LogFileTest, RecordsAreWrittenImmediatelyToFilesNamedByPrefixTimeAndNumber) {
  LogFile one(prefix("log"), 1000), two(prefix("log"), 1000);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(one.Write("one").ok());
  EXPECT_TRUE(one.Write("").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"one", ""}));
  EXPECT_TRUE(two.Write("two").ok());
  const std::string pattern = prefix("log") + "-[0-9]{8}T[0-9]{6}Z-000[01]\\.tfrecord";
  EXPECT_THAT(Files(), ElementsAre(MatchesRegex(pattern), MatchesRegex(pattern)));
}

TEST_F(LogFileTest, ARecordThatDoesNotFitStartsTheNextFile) {
  const std::string record(20, 'x');  // 36 bytes in the file
  LogFile log(prefix("log"), 80);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(log.Write(record).ok());
  EXPECT_THAT(Records(),
              ElementsAre(Strings{record, record}, Strings{record, record}, Strings{record}));
  EXPECT_TRUE(log.Write(std::string(100, 'y')).ok());
  EXPECT_EQ(Records().size(), 4u);
}

TEST_F(LogFileTest, ADeletedOrRenamedFileIsReplacedByANewOne) {
  LogFile log(prefix("log"), 1000);
  EXPECT_TRUE(log.Write("one").ok());
  std::filesystem::remove(Files()[0]);
  EXPECT_TRUE(log.Write("two").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"two"}));
  std::filesystem::rename(Files()[0], prefix("rotated"));
  EXPECT_TRUE(log.Write("three").ok());
  EXPECT_THAT(Records("log"), ElementsAre(Strings{"three"}));
  EXPECT_THAT(Records("rotated"), ElementsAre(Strings{"two"}));
}

TEST_F(LogFileTest, ErrorsNameAMissingFolderAndTheNextWriteTriesAgain) {
  LogFile log(folder_ / "later" / "log", 1000);
  const Status status = log.Write("lost");
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr((folder_ / "later" / "log").string()));
  EXPECT_THAT(status.message, HasSubstr("No such file or directory"));
  std::filesystem::create_directory(folder_ / "later");
  EXPECT_TRUE(log.Write("kept").ok());
}

// Writes 100 bytes while files are limited to 40, as if the disk were full.
Status WriteToFullDisk(LogFile* log) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit limit = before;
  limit.rlim_cur = 40;
  setrlimit(RLIMIT_FSIZE, &limit);
  Status status = log->Write(std::string(100, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  return status;
}

TEST_F(LogFileTest, AFullDiskLeavesNoPartialRecordAndNoEmptyFile) {
  LogFile log(prefix("log"), 1 << 20);
  EXPECT_FALSE(WriteToFullDisk(&log).ok());
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(log.Write("kept").ok());
  const Status status = WriteToFullDisk(&log);
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_THAT(status.message, HasSubstr("cannot be written: File too large"));
  EXPECT_THAT(Records(), ElementsAre(Strings{"kept"}));
  EXPECT_TRUE(log.Write("kept, too").ok());
  EXPECT_THAT(Records(), ElementsAre(Strings{"kept"}, Strings{"kept, too"}));
}

class RequestLogsTest : public LogFileTest {
 protected:
  // Draws a sample of `requests` requests, logs it, and returns its size.
  static int Send(RequestLogs* logs, const std::string& model, int requests) {
    int drawn = 0;
    for (int i = 0; i < requests; ++i) {
      const auto log = logs->Sample(model);
      if (log == nullptr) continue;
      logs->Add(log, {"Predict", model, 1, "serving_default", {}, {}});
      ++drawn;
    }
    return drawn;
  }

  // The models in the records of all files whose name begins with `name`.
  Strings Logged(const std::string& name) const {
    Strings models;
    for (const Strings& records : Records(name)) {
      for (const std::string& record : records) {
        PredictionLog log;
        EXPECT_TRUE(log.ParseFromString(record));
        models.push_back(log.log_metadata().model_spec().name());
      }
    }
    return models;
  }
};

TEST_F(RequestLogsTest, NothingIsLoggedByDefaultOrAtRateZero) {
  {
    RequestLogs logs({});
    EXPECT_EQ(Send(&logs, "a", 100), 0);
    logs.Configure({{"a", {0, prefix("a")}}});
    EXPECT_EQ(Send(&logs, "a", 100), 0);
    EXPECT_THAT(logs.Counts(), IsEmpty());
  }
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RequestLogsTest, DestructionWritesAllSamplesToFilesThatModelsMayShare) {
  {
    RequestLogs logs({});
    logs.Configure({{"a", {1, prefix("a")}}, {"b", {1, prefix("bc")}}, {"c", {1, prefix("bc")}}});
    EXPECT_EQ(Send(&logs, "a", 2), 2);
    EXPECT_EQ(Send(&logs, "b", 1), 1);
    EXPECT_EQ(Send(&logs, "c", 1), 1);
    EXPECT_EQ(Send(&logs, "d", 1), 0);
  }
  EXPECT_THAT(Logged("a-"), ElementsAre("a", "a"));
  EXPECT_THAT(Logged("bc-"), ElementsAre("b", "c"));
}

TEST_F(RequestLogsTest, SamplesAreDrawnWithTheConfiguredProbability) {
  RequestLogs logs({});
  logs.Configure({{"a", {0.25, prefix("a")}}});
  int drawn = 0;
  for (int i = 0; i < 20'000; ++i) drawn += logs.Sample("a") != nullptr;
  EXPECT_NEAR(drawn, 5000, 400);  // 6.5 standard deviations
}

TEST_F(RequestLogsTest, ANewConfigurationContinuesTheSameFile) {
  {
    RequestLogs logs({});
    logs.Configure({{"a", {1, prefix("a")}}});
    Send(&logs, "a", 1);
    logs.Configure({{"a", {0.999999, prefix("a")}}});
    Send(&logs, "a", 2);
    logs.Configure({});
    EXPECT_EQ(Send(&logs, "a", 100), 0);
    ASSERT_EQ(logs.Counts().size(), 1u);
  }
  EXPECT_THAT(Logged("a-"), ElementsAre("a", "a", "a"));
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(RequestLogsTest, RecordsBeyondTheWaitingLimitAreDroppedAndCounted) {
  RequestLogs::Options options;
  options.max_waiting_bytes = 1000;
  RequestLogs logs(options);
  logs.Configure({{"a", {1, prefix("a")}}});
  const std::string large(1001, 'x');
  logs.Add(logs.Sample("a"), {"Predict", "a", 1, "s", Bytes(large), {}});
  const auto counts = logs.Counts().at(0);
  EXPECT_EQ(counts.model_name, "a");
  EXPECT_EQ(counts.records[static_cast<int>(StatusCode::kResourceExhausted)], 1);
}

TEST_F(RequestLogsTest, RecordsThatCannotBeWrittenAreCounted) {
  RequestLogs logs({});
  logs.Configure({{"a", {1, prefix("no/such/folder")}}});
  Send(&logs, "a", 3);
  int64_t failed = 0;
  while (failed < 3) {
    failed = logs.Counts().at(0).records[static_cast<int>(StatusCode::kUnavailable)];
  }
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace colcast::request_log
