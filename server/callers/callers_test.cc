#include "server/callers/callers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast::callers {
namespace {

TEST(CallerCountsTest, EachCallerHasItsOwn) {
  CallerCounts counts;
  counts.Of("feed")->requests = 3;
  counts.Of("batch")->rows = 7;
  counts.Of("")->requests = 1;
  EXPECT_EQ(counts.Of("feed"), counts.Of("feed"));
  const std::vector<CallerStats> all = counts.All();
  ASSERT_EQ(all.size(), 4);
  EXPECT_EQ(all[0].caller, "batch");
  EXPECT_EQ(all[0].rows, 7);
  EXPECT_EQ(all[1].caller, "feed");
  EXPECT_EQ(all[1].requests, 3);
  EXPECT_EQ(all[2].caller, kWithoutName);
  EXPECT_EQ(all[2].requests, 1);
  EXPECT_EQ(all[3].caller, kOther);
}

TEST(CallerCountsTest, ThoseBeyondTheMostAreCountedTogether) {
  CallerCounts counts;
  for (int i = 0; i < 10'000; ++i) ++counts.Of("made up " + std::to_string(i))->requests;
  EXPECT_EQ(counts.All().size(), CallerCounts::kMost + 2);
  EXPECT_EQ(counts.Of(kOther)->requests, 10'000 - int64_t{CallerCounts::kMost});
}

TEST(CallerCountsTest, ACallerCalledAsThoseOfSeveralAreIsCountedWithThem) {
  CallerCounts counts;
  EXPECT_EQ(counts.Of(kWithoutName), counts.Of(""));
  counts.Of(kOther)->requests = 1;
  EXPECT_EQ(counts.All().size(), 2);
}

TEST(CallersTest, RequestsOfACallerAreOneClients) {
  Callers callers({"x-caller", false});
  const Caller one(&callers, "batch"), same(&callers, "batch"), other(&callers, "feed");
  EXPECT_EQ(one.client(), same.client());
  EXPECT_NE(one.client(), other.client());
  EXPECT_NE(one.client(), 0);
}

TEST(CallersTest, OnlyShortPrintableNamesCount) {
  Callers callers({"x-caller", false});
  for (const std::string& sent :
       {std::string(), std::string(129, 'x'), std::string("caf\xc3\xa9"), std::string("a\nb")}) {
    Caller caller(&callers, sent);
    EXPECT_EQ(caller.client(), 0) << sent;
    caller.Count(1, {});
  }
  EXPECT_EQ(callers.counts().Of("")->rows, 4);
}

TEST(CallersTest, CountsAnsweredRequests) {
  Callers callers({"x-caller", false});
  Caller(&callers, "batch").Count(8, std::chrono::nanoseconds(500));
  Caller(&callers, "batch").Count(0, std::chrono::nanoseconds(20));
  const std::vector<CallerStats> all = callers.counts().All();
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0].caller, "batch");
  EXPECT_EQ(all[0].requests, 2);
  EXPECT_EQ(all[0].rows, 8);
  EXPECT_EQ(all[0].run_time, std::chrono::nanoseconds(520));
}

}  // namespace
}  // namespace colcast::callers
