#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/metrics/exposition.h"

namespace colcast::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CallRecord Answered(std::string_view model, std::string_view signature) {
  CallRecord record;
  record.api = "Predict";
  record.entrypoint = "GRPC";
  record.model_name = model;
  record.signature_name = signature;
  record.latency = microseconds(900);
  record.queue_wait = microseconds(5);
  record.runtime = microseconds(700);
  record.request_bytes = 5000;
  record.response_bytes = 300;
  record.expansion = {500, 150, 74'850};
  return record;
}

CallRecord Failed(std::string_view model, StatusCode code) {
  CallRecord record = Answered(model, model.empty() ? "" : "late");
  record.code = code;
  return record;
}

std::string RequestsText(const Metrics& metrics) {
  TextWriter writer;
  WriteRequests(metrics.Requests(), &writer);
  return writer.text();
}

TEST(MetricsTest, EachModelSignatureApiAndEntrypointHasItsOwnSeries) {
  Metrics metrics;
  metrics.Record(Answered("b", "late"));
  metrics.Record(Answered("a", "late"));
  metrics.Record(Answered("a", "columnar"));
  CallRecord rest = Answered("a", "late");
  rest.entrypoint = "REST";
  metrics.Record(rest);
  metrics.Record(Answered("a", "late"));
  const std::vector<RequestSeries> all = metrics.Requests();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].labels.signature_name, "columnar");
  EXPECT_EQ(all[1].labels.entrypoint, "GRPC");
  EXPECT_EQ(all[1].answered[0], 2);
  EXPECT_EQ(all[2].labels.entrypoint, "REST");
  EXPECT_EQ(all[3].labels.model_name, "b");
}

TEST(MetricsTest, RequestsOfAllThreadsAreCounted) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics] {
      for (int i = 0; i < 5'000; ++i) metrics.Record(Answered("a", std::to_string(i % 5)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<RequestSeries> all = metrics.Requests();
  ASSERT_EQ(all.size(), 5u);
  for (const RequestSeries& series : all) EXPECT_EQ(series.answered[0], 4'000);
}

TEST(ExpositionTest, TensorFlowServingsMetricsSumOverSignatures) {
  Metrics metrics;
  metrics.Record(Answered("a", "late"));
  metrics.Record(Answered("a", "columnar"));
  metrics.Record(Failed("a", StatusCode::kInvalidArgument));
  const std::string text = RequestsText(metrics);
  for (const char* line : {
           ":tensorflow:serving:request_count{model_name=\"a\",status=\"OK\"} 2\n",
           ":tensorflow:serving:request_count{model_name=\"a\",status=\"INVALID_ARGUMENT\"} 1\n",
           ":tensorflow:serving:request_latency_count{model_name=\"a\",API=\"Predict\","
           "entrypoint=\"GRPC\"} 2\n",
           ":tensorflow:serving:runtime_latency_sum{model_name=\"a\",API=\"Predict\","
           "runtime=\"TF1\"} 1400\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(BucketsTest, LatencyBoundsEqualTensorFlowServings) {
  const std::vector<double>& bounds = LatencyBuckets().published;
  ASSERT_EQ(bounds.size(), 33u);
  EXPECT_DOUBLE_EQ(bounds[0], 10);
  EXPECT_DOUBLE_EQ(bounds[1], 18);
  EXPECT_DOUBLE_EQ(bounds[2], 32.4);
  EXPECT_NEAR(bounds[32], 1.4748e9, 1e6);  // 25 minutes
}

TEST(BucketsTest, RowAndByteBoundsArePowersOfTwo) {
  EXPECT_THAT(RowBuckets().published,
              ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384));
  EXPECT_THAT(ByteBuckets().published, ElementsAre(256, 1024, 4096, 16384, 65536, 262144, 1048576,
                                                   4194304, 16777216, 67108864));
}

TEST(HistogramTest, BucketsIncludeTheirUpperBound) {
  Histogram histogram(LatencyBuckets());
  histogram.Observe(18'000);
  histogram.Observe(18'001);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts[0], 0);
  EXPECT_EQ(snapshot.counts[1], 1);
  EXPECT_EQ(snapshot.counts[2], 1);
}

TEST(HistogramTest, ValuesOverTheLastBoundAreCounted) {
  Histogram histogram(RowBuckets());
  histogram.Observe(16384);
  histogram.Observe(16385);
  histogram.Observe(int64_t{1} << 50);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts.back(), 2);
  EXPECT_EQ(snapshot.Count(), 3);
  EXPECT_EQ(snapshot.sum, 16384 + 16385 + (int64_t{1} << 50));
}

TEST(HistogramSnapshotTest, AddsToEmptyAndFilledSnapshots) {
  Histogram histogram(RowBuckets());
  histogram.Observe(3);
  HistogramSnapshot sum;
  sum.Add(histogram.Snapshot());
  histogram.Observe(100);
  sum.Add(histogram.Snapshot());
  EXPECT_EQ(sum.Count(), 3);
  EXPECT_EQ(sum.sum, 106);
}

TEST(TextWriterTest, AMetricHasHelpAndTypeAboveItsSamples) {
  TextWriter writer;
  writer.Metric("answers_total", MetricType::kCounter, "Answers given.");
  writer.Sample({}, int64_t{42});
  writer.Sample({{"kind", "late"}, {"model", "a"}}, 0.25);
  EXPECT_EQ(writer.text(),
            "# HELP answers_total Answers given.\n"
            "# TYPE answers_total counter\n"
            "answers_total 42\n"
            "answers_total{kind=\"late\",model=\"a\"} 0.25\n");
}

TEST(TextWriterTest, LabelValuesAreEscapedUtf8AndLargeNumbersKeepTheirDigits) {
  TextWriter writer;
  writer.Metric("m", MetricType::kGauge, "h");
  writer.Sample({{"path", "a\\b\"c\nd"}}, int64_t{1});
  writer.Sample({{"path", "caf\xc3\xa9"}}, int64_t{1});
  writer.Sample({{"path", "caf\xe9"}}, int64_t{2});
  writer.Sample({}, 1732184221.25);
  EXPECT_EQ(writer.text(),
            "# HELP m h\n# TYPE m gauge\nm{path=\"a\\\\b\\\"c\\nd\"} 1\n"
            "m{path=\"caf\xc3\xa9\"} 1\nm{path=\"caf?\"} 2\nm 1732184221.25\n");
}

TEST(TextWriterTest, AHistogramIsCumulativeInItsPublishedUnit) {
  Histogram histogram(LatencyBuckets());
  histogram.Observe(9'500);
  histogram.Observe(100'000);
  histogram.Observe(3'600'000'000'000);
  TextWriter writer;
  writer.Metric("latency", MetricType::kHistogram, "h");
  writer.Sample({{"model", "a"}}, histogram.Snapshot());
  for (const char* line : {
           "\nlatency_bucket{model=\"a\",le=\"10\"} 1\n",
           "\nlatency_bucket{model=\"a\",le=\"58.32\"} 1\n",
           "\nlatency_bucket{model=\"a\",le=\"104.976\"} 2\n",
           "\nlatency_bucket{model=\"a\",le=\"188.957\"} 2\n",
           "\nlatency_bucket{model=\"a\",le=\"1.47476e+09\"} 2\n",
           "\nlatency_bucket{model=\"a\",le=\"+Inf\"} 3\n",
           "\nlatency_sum{model=\"a\"} 3600000109.5\n",
           "\nlatency_count{model=\"a\"} 3\n",
       }) {
    EXPECT_NE(writer.text().find(line), std::string::npos) << line << writer.text();
  }
}

double ValueOf(const std::string& name) {
  TextWriter writer;
  WriteProcess(&writer);
  const std::string line = '\n' + name + ' ';
  const size_t at = writer.text().find(line);
  EXPECT_NE(at, std::string::npos) << name;
  return std::stod(writer.text().substr(at + line.size()));
}

TEST(ProcessTest, MetricsDescribeThisProcess) {
  EXPECT_GT(ValueOf("process_cpu_seconds_total"), 0);
  EXPECT_GT(ValueOf("process_resident_memory_bytes"), 1 << 20);
  EXPECT_LT(ValueOf("process_resident_memory_bytes"), 1ll << 32);
  EXPECT_GT(ValueOf(":colcast:anonymous_memory_bytes"), 0);
  EXPECT_LT(ValueOf(":colcast:anonymous_memory_bytes"), ValueOf(":colcast:memory_limit_bytes"));
  EXPECT_GT(ValueOf("process_max_fds"), ValueOf("process_open_fds"));
  const double start = ValueOf("process_start_time_seconds");
  const auto now = static_cast<double>(time(nullptr));
  EXPECT_LE(start, now + 1);
  EXPECT_GT(start, now - 3600);
  EXPECT_EQ(ValueOf("process_start_time_seconds"), start);
}

}  // namespace
}  // namespace colcast::metrics
