#include "server/inference/batching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace colcast::inference {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class BatchingTest : public testing::Test {
 protected:
  std::string Write(const std::string& text, const std::string& name = "batching.pbtxt") {
    std::filesystem::create_directories(directory_);
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = testing::TempDir() + "/batching_" +
                                 testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(BatchingTest, WithoutAFileTheDefaultsAreTensorFlowServings) {
  BatchingParameters parameters;
  ASSERT_TRUE(ReadBatchingParameters("", &parameters).ok());
  const scheduling::BatchLimits& limits = parameters.batching.limits;
  EXPECT_TRUE(limits.join);
  EXPECT_FALSE(limits.share);
  EXPECT_EQ(limits.max_rows, 1000);
  EXPECT_EQ(limits.timeout, microseconds(0));
  EXPECT_EQ(limits.max_waiting_rows, 10 * 1000);
  EXPECT_EQ(limits.max_request_rows, 1000);
  EXPECT_EQ(limits.max_slice_rows, scheduling::BatchLimits::kUnlimited);
  EXPECT_TRUE(parameters.batching.rules.any_signature);
  EXPECT_FALSE(parameters.batching.rules.pad_variable_length_inputs);
  EXPECT_FALSE(parameters.num_threads.has_value());
}

TEST_F(BatchingTest, EveryFieldTakesEffect) {
  BatchingParameters parameters;
  const Status status = ReadBatchingParameters(Write(R"(
    max_batch_size { value: 128 }
    batch_timeout_micros { value: 250 }
    max_enqueued_batches { value: 3 }
    num_batch_threads { value: 4 }
    thread_pool_name { value: "rankers" }
    allowed_batch_sizes: 8 allowed_batch_sizes: 32
    pad_variable_length_inputs: true
    enable_large_batch_splitting { value: true }
    max_execution_batch_size { value: 32 })"),
                                               &parameters);
  ASSERT_TRUE(status.ok()) << status.message;
  const scheduling::BatchLimits& limits = parameters.batching.limits;
  EXPECT_EQ(limits.max_rows, 32);
  EXPECT_EQ(limits.max_slice_rows, 32);
  EXPECT_EQ(limits.max_request_rows, 128);
  EXPECT_EQ(limits.timeout, microseconds(250));
  EXPECT_EQ(limits.max_waiting_rows, 3 * 32);
  EXPECT_EQ(parameters.num_threads, 4);
  EXPECT_EQ(parameters.thread_pool_name, "rankers");
  EXPECT_TRUE(parameters.batching.rules.pad_variable_length_inputs);
  EXPECT_THAT(parameters.batching.rules.allowed_batch_sizes, ElementsAre(8, 32));
}

TEST_F(BatchingTest, ErrorsNameFileFieldAndValue) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"max_batch_sise { value: 4 }", ":1:16: "},
      {"\nmax_batch_size: 4", ":2:17: "},
      {"max_batch_size { value: 0 }", "max_batch_size: got 0, expected at least 1"},
      {"batch_timeout_micros { value: -1 }", "batch_timeout_micros: got -1, expected at least 0"},
      {"num_batch_threads { value: 0 }", "num_batch_threads: got 0, expected at least 1"},
      {"num_batch_threads { value: 1000000000 }",
       "num_batch_threads: got 1000000000, expected at most 4096"},
      {"allowed_batch_sizes: 4 allowed_batch_sizes: 4", "must be in increasing order"},
      {"allowed_batch_sizes: 0 allowed_batch_sizes: 1000", "allowed_batch_sizes: got 0"},
      {"max_batch_size { value: 4 } allowed_batch_sizes: 3", "last one was 3; expected 4"},
      {"max_batch_size { value: 4 } max_execution_batch_size { value: 8 } "
       "enable_large_batch_splitting { value: true }",
       "max_execution_batch_size: got 8, expected at most max_batch_size, 4"},
  };
  for (const auto& c : kCases) {
    const std::string path = Write(c.text);
    BatchingParameters parameters;
    const Status status = ReadBatchingParameters(path, &parameters);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message, HasSubstr(path)) << c.text;
    EXPECT_THAT(status.message, HasSubstr(c.message)) << c.text;
  }
  BatchingParameters parameters;
  EXPECT_EQ(ReadBatchingParameters("no/such/file", &parameters).code, StatusCode::kNotFound);
}

TEST_F(BatchingTest, AVersionWithoutAFileIsNotBatchedIfFilesArePerModel) {
  BatchingOptions options;
  options.batching.emplace().limits.max_rows = 7;
  options.per_model = true;
  Batching without;
  ASSERT_TRUE(BatchingOf(options, directory_, &without).ok());
  EXPECT_FALSE(without.rules.any_signature);
  EXPECT_TRUE(without.limits.share);

  Write("max_batch_size { value: 5 }", "batching_params.pbtxt");
  Batching with;
  ASSERT_TRUE(BatchingOf(options, directory_, &with).ok());
  EXPECT_TRUE(with.rules.any_signature);
  EXPECT_EQ(with.limits.max_rows, 5);

  Write("max_batch_size { value: 0 }", "batching_params.pbtxt");
  EXPECT_EQ(BatchingOf(options, directory_, &with).code, StatusCode::kInvalidArgument);

  options.per_model = false;
  Batching common;
  ASSERT_TRUE(BatchingOf(options, directory_, &common).ok());
  EXPECT_EQ(common.limits.max_rows, 7);
}

TEST_F(BatchingTest, RequestsOfProvenSignaturesJoinWithoutBatchingUnlessTurnedOff) {
  BatchingOptions options;
  options.max_time = microseconds(1500);
  Batching batching;
  ASSERT_TRUE(BatchingOf(options, directory_, &batching).ok());
  EXPECT_TRUE(batching.limits.join);
  EXPECT_EQ(batching.limits.max_time, microseconds(1500));
  EXPECT_FALSE(batching.rules.any_signature);
  options.join_waiting_requests = false;
  ASSERT_TRUE(BatchingOf(options, directory_, &batching).ok());
  EXPECT_FALSE(batching.limits.join);
}

}  // namespace
}  // namespace colcast::inference
