#include "server/sender/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace colcast::sender {
namespace {

using testing::HasSubstr;

Outcome FourCalls() {
  Outcome outcome;
  outcome.seconds = 2;
  outcome.calls = {{0, 0.25, 0, 7}, {0.75, 1, 0, 7}, {1, 1.75, 0, 7}, {1, 1, 8, 0}};
  outcome.errors[StatusCode::kResourceExhausted] = {1, "the queue is full"};
  outcome.answers = {{2, "answer"}};
  return outcome;
}
const Job kJob{{"a"}, {{0, 0}, {0.5, 0}, {1, 0}, {1, 0}}};

TEST(FiguresTest, LatenciesCountFromWhenACallWasDueAndLeaveErrorsOut) {
  const std::string figures = Figures(kJob, FourCalls());
  EXPECT_THAT(figures, HasSubstr(R"("calls":4,"answered":3,"seconds":2.0)"));
  EXPECT_THAT(figures, HasSubstr(R"("latency_ms":{"p50":500.0,"p95":750.0,"p99":750.0})"));
  EXPECT_THAT(figures, HasSubstr(R"("lateness_ms":{"p50":0.0,"p95":250.0,"p99":250.0})"));
  EXPECT_THAT(
      figures,
      HasSubstr(R"("errors":{"RESOURCE_EXHAUSTED":{"count":1,"first":"the queue is full"}})"));
}

TEST(FiguresTest, RecordsAreTheCallsAndThenTheAnswers) {
  const Outcome outcome = FourCalls();
  const std::string records = Records(outcome);
  const size_t calls = outcome.calls.size() * sizeof(CallRecord);
  ASSERT_EQ(records.size(), calls + 3 * sizeof(uint64_t) + 6);
  EXPECT_EQ(std::memcmp(records.data(), outcome.calls.data(), calls), 0);
  const uint64_t head[] = {1, 2, 6};
  EXPECT_EQ(std::memcmp(records.data() + calls, head, sizeof(head)), 0);
  EXPECT_EQ(records.substr(calls + sizeof(head)), "answer");
}

}  // namespace
}  // namespace colcast::sender
