#include "server/metrics/text_writer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace colcast::metrics {
namespace {

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

TEST(TextWriterTest, LabelValuesAreEscaped) {
  TextWriter writer;
  writer.Metric("m", MetricType::kGauge, "h");
  writer.Sample({{"path", "a\\b\"c\nd"}}, int64_t{1});
  EXPECT_NE(writer.text().find("m{path=\"a\\\\b\\\"c\\nd\"} 1\n"), std::string::npos);
}

TEST(TextWriterTest, LabelValuesAreUtf8) {
  TextWriter writer;
  writer.Metric("m", MetricType::kGauge, "h");
  writer.Sample({{"path", "caf\xc3\xa9"}}, int64_t{1});
  writer.Sample({{"path", "caf\xe9"}}, int64_t{2});
  EXPECT_NE(writer.text().find("m{path=\"caf\xc3\xa9\"} 1\n"), std::string::npos);
  EXPECT_NE(writer.text().find("m{path=\"caf?\"} 2\n"), std::string::npos);
}

TEST(TextWriterTest, ABigNumberKeepsItsDigits) {
  TextWriter writer;
  writer.Metric("m", MetricType::kGauge, "h");
  writer.Sample({}, 1732184221.25);
  EXPECT_NE(writer.text().find("\nm 1732184221.25\n"), std::string::npos);
}

TEST(TextWriterTest, AHistogramIsCumulativeInItsPublishedUnit) {
  Histogram histogram(LatencyBuckets());
  histogram.Observe(std::chrono::nanoseconds(9'500));
  histogram.Observe(std::chrono::microseconds(100));
  histogram.Observe(std::chrono::hours(1));
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

}  // namespace
}  // namespace colcast::metrics
