#include "server/tracing/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace colcast::tracing {
namespace {

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kParent = "b7ad6b7169203331";

TEST(TraceContextTest, ReadsTheIdsAndTheSampledFlag) {
  const auto sampled = ParseTraceparent("00-" + kTrace + "-" + kParent + "-01");
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->trace_id, "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c");
  EXPECT_EQ(sampled->parent_id, "\xb7\xad\x6b\x71\x69\x20\x33\x31");
  EXPECT_TRUE(sampled->sampled);
  EXPECT_FALSE(ParseTraceparent("00-" + kTrace + "-" + kParent + "-02")->sampled);
  EXPECT_TRUE(ParseTraceparent("00-" + kTrace + "-" + kParent + "-ff")->sampled);
}

TEST(TraceContextTest, ReadsWhatItKnowsOfVersionsToCome) {
  EXPECT_TRUE(ParseTraceparent("01-" + kTrace + "-" + kParent + "-01"));
  EXPECT_TRUE(ParseTraceparent("cc-" + kTrace + "-" + kParent + "-01-what comes"));
  EXPECT_FALSE(ParseTraceparent("cc-" + kTrace + "-" + kParent + "-01.what comes"));
}

TEST(TraceContextTest, RefusesEverythingElse) {
  const std::string good = "00-" + kTrace + "-" + kParent + "-01";
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseTraceparent(good.substr(0, size))) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'g', 'A', ' ', '\0', '\xff', '_'}) {
      std::string bad = good;
      bad[at] = c;
      EXPECT_FALSE(ParseTraceparent(bad)) << bad;
    }
  }
  EXPECT_FALSE(ParseTraceparent(good + "-00"));
  EXPECT_FALSE(ParseTraceparent(good + " "));
  EXPECT_FALSE(ParseTraceparent("ff-" + kTrace + "-" + kParent + "-01"));
  EXPECT_FALSE(ParseTraceparent("00-" + std::string(32, '0') + "-" + kParent + "-01"));
  EXPECT_FALSE(ParseTraceparent("00-" + kTrace + "-" + std::string(16, '0') + "-01"));
}

using std::chrono::hours;
using std::chrono::microseconds;
using testing::ElementsAre;

constexpr char kSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kNotSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

Tracer::Options WithRatio(double ratio) {
  Tracer::Options options;
  options.sampling_ratio = ratio;
  return options;
}
Status Ignore(const std::vector<Span>&) { return OkStatus(); }

TEST(TracerTest, TheClientsFlagDecidesWhateverTheRatioIs) {
  const Tracer never(WithRatio(0), {}, Ignore);
  const Tracer always(WithRatio(1), {}, Ignore);
  EXPECT_NE(never.Start(kSampled), nullptr);
  EXPECT_EQ(never.Start(""), nullptr);
  EXPECT_EQ(never.Start("nonsense"), nullptr);
  EXPECT_EQ(always.Start(kNotSampled), nullptr);
  EXPECT_NE(always.Start(""), nullptr);
  EXPECT_NE(always.Start("nonsense"), nullptr);
}

TEST(TracerTest, DrawsAboutTheRatio) {
  const Tracer tracer(WithRatio(0.25), {}, Ignore);
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) sampled += tracer.Start("") != nullptr;
  EXPECT_GT(sampled, 2'000);
  EXPECT_LT(sampled, 3'000);
}

// The spans of one request, in the order in which they were made.
std::vector<Span> SpansOf(metrics::CallRecord record, Tracer::Time received, bool with_stage) {
  std::vector<Span> spans;
  {
    Tracer tracer(WithRatio(0), {100, 100, hours(1)}, [&](const std::vector<Span>& sent) {
      spans = sent;
      return OkStatus();
    });
    const auto trace = tracer.Start(kSampled);
    if (with_stage) {
      trace->OnStage({"user", received + microseconds(30), received + microseconds(40), 3, 2});
    }
    record.received = received;
    tracer.Finish(*trace, record);
  }
  return spans;
}

TEST(TracerTest, TheSpansOfARequestThatRan) {
  const Tracer::Time received = std::chrono::steady_clock::now();
  metrics::CallRecord record;
  record.api = "Predict";
  record.entrypoint = "GRPC";
  record.model_name = "movies";
  record.latency = microseconds(100);
  record.queue_wait = microseconds(10);
  record.run_start = received + microseconds(20);
  record.runtime = microseconds(60);
  record.requests_in_run = 4;
  const std::vector<Span> spans = SpansOf(record, received, true);
  std::vector<std::string> names;
  std::map<std::string, Span> by_name;
  for (const Span& span : spans) {
    names.push_back(span.name);
    by_name[span.name] = span;
    EXPECT_LE(span.start, span.end) << span.name;
    EXPECT_EQ(span.trace_id, spans[0].trace_id);
  }
  EXPECT_THAT(names, ElementsAre("tensorflow.serving.PredictionService/Predict", "queued",
                                 "planned", "run", "stage user", "sent"));
  EXPECT_EQ(spans[0].parent_id, "\xb7\xad\x6b\x71\x69\x20\x33\x31");
  EXPECT_EQ(spans[0].end - spans[0].start, 100'000);
  for (const char* name : {"queued", "planned", "run", "sent"}) {
    EXPECT_EQ(by_name[name].parent_id, spans[0].id) << name;
  }
  EXPECT_EQ(by_name["stage user"].parent_id, by_name["run"].id);
  EXPECT_EQ(by_name["queued"].end, by_name["planned"].start);
  EXPECT_EQ(by_name["planned"].end, by_name["run"].start);
  EXPECT_EQ(by_name["run"].end, by_name["sent"].start);
  EXPECT_EQ(by_name["sent"].end, spans[0].end);
  EXPECT_EQ(std::get<int64_t>(by_name["run"].attributes[0].second), 4);
  EXPECT_STREQ(by_name["stage user"].attributes[2].first, "colcast.misses");
  EXPECT_EQ(std::get<int64_t>(by_name["stage user"].attributes[2].second), 1);
}

TEST(TracerTest, ARequestThatNeverRanHasWaitedOnly) {
  metrics::CallRecord record;
  record.api = "Predict";
  record.entrypoint = "REST";
  record.code = StatusCode::kNotFound;
  record.latency = microseconds(100);
  const std::vector<Span> spans = SpansOf(record, std::chrono::steady_clock::now(), false);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_TRUE(spans[0].failed);
  EXPECT_EQ(spans[0].name, "POST Predict");
  EXPECT_EQ(spans[1].name, "queued");
}

}  // namespace
}  // namespace colcast::tracing
