#include "server/tracing/tracer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

// tests/server/test_tracing.py tests the spans of requests.
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

TEST(TraceContextTest, ReadsTheKnownFieldsOfLaterVersions) {
  EXPECT_TRUE(ParseTraceparent("01-" + kTrace + "-" + kParent + "-01"));
  EXPECT_TRUE(ParseTraceparent("cc-" + kTrace + "-" + kParent + "-01-what comes"));
  EXPECT_FALSE(ParseTraceparent("cc-" + kTrace + "-" + kParent + "-01.what comes"));
}

TEST(TraceContextTest, RefusesMalformedTraceparents) {
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

constexpr char kSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kNotSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

Tracer::Options WithRatio(double ratio) {
  Tracer::Options options;
  options.sampling_ratio = ratio;
  return options;
}
Status Ignore(const std::vector<Span>&) { return OkStatus(); }

TEST(TracerTest, TheClientsFlagOverridesTheRatio) {
  const Tracer never(WithRatio(0), {}, Ignore);
  const Tracer always(WithRatio(1), {}, Ignore);
  EXPECT_NE(never.Start(kSampled), nullptr);
  EXPECT_EQ(never.Start(""), nullptr);
  EXPECT_EQ(never.Start("nonsense"), nullptr);
  EXPECT_EQ(always.Start(kNotSampled), nullptr);
  EXPECT_NE(always.Start(""), nullptr);
  EXPECT_NE(always.Start("nonsense"), nullptr);
}

TEST(TracerTest, SamplesRequestsAtTheConfiguredRatio) {
  const Tracer tracer(WithRatio(0.25), {}, Ignore);
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) sampled += tracer.Start("") != nullptr;
  EXPECT_GT(sampled, 2'000);
  EXPECT_LT(sampled, 3'000);
}

}  // namespace
}  // namespace colcast::tracing
