#include "server/callers/callers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast::callers {
namespace {

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
