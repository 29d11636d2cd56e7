#include "server/scheduling/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class WaitingJob final : public Job {
 public:
  explicit WaitingJob(std::string name, Clock::time_point deadline)
      : name(std::move(name)), deadline_(deadline) {}
  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return false; }
  void Run(Clock::duration, std::vector<Taken>*) override {}
  void Drop(DropReason) override {}

  const std::string name;

 private:
  const Clock::time_point deadline_;
};

class RequestQueueTest : public testing::Test {
 protected:
  struct Request {
    int at = 0;  // arrival time in milliseconds
    RequestClass* of = nullptr;
    int64_t rows = 0;
    milliseconds cost{0};
    uint64_t group = 1;
    int due = 0;          // deadline; 0 for none
    uint64_t client = 0;  // 0: the job has its own client
  };

  static Clock::time_point At(int ms) { return Clock::time_point(milliseconds(ms)); }

  Job* Make(const std::string& name, int due = 0) {
    return &jobs_.emplace_back(name, due == 0 ? Clock::time_point::max() : At(due));
  }

  // Returns the reason for refusing the job; "" if it was added.
  std::string Add(const std::string& name, const Request& request) {
    const auto refused = queue_.Add(
        Make(name, request.due),
        {request.of, request.group, request.rows, request.cost, request.client}, At(request.at));
    return refused ? DropReasonName(*refused) : "";
  }

  // Returns the jobs dequeued at that time as "a + b"; "" if there are none.
  std::string Take(int at) {
    Taken next;
    std::vector<Taken> companions;
    if (!queue_.Take(At(at), takers_, &next, &companions)) return "";
    std::string names = NameOf(next.job);
    for (const Taken& taken : companions) names += " + " + NameOf(taken.job);
    return names;
  }

  std::vector<std::string> TakeAll(int at) {
    std::vector<std::string> all;
    for (std::string names = Take(at); !names.empty(); names = Take(at)) all.push_back(names);
    return all;
  }

  static std::string NameOf(Job* job) { return static_cast<WaitingJob*>(job)->name; }

  RequestClass* NewClass(const BatchLimits& limits) { return &classes_.emplace_back(limits); }

  std::deque<WaitingJob> jobs_;
  std::deque<RequestClass> classes_;
  RequestQueue queue_{/*max_requests=*/1000};
  int takers_ = 1;  // number of free workers
};

TEST_F(RequestQueueTest, RequestsOfUnknownCostRunInOrderOfArrival) {
  for (const char* name : {"a", "b", "c"}) Add(name, {});
  EXPECT_THAT(TakeAll(1), ElementsAre("a", "b", "c"));
}

TEST_F(RequestQueueTest, ShortRequestsOvertakeLongOnes) {
  Add("long", {/*at=*/0, nullptr, 1000, milliseconds(10)});
  Add("short", {/*at=*/5, nullptr, 20, milliseconds(1)});
  EXPECT_THAT(TakeAll(6), ElementsAre("short", "long"));
}

TEST_F(RequestQueueTest, ALongRequestDoesNotWaitForRequestsThatArriveEightTimesItsCostLater) {
  Add("long", {/*at=*/0, nullptr, 1000, milliseconds(10)});
  Add("just in time", {/*at=*/71, nullptr, 20, milliseconds(1)});
  Add("too late", {/*at=*/73, nullptr, 20, milliseconds(1)});
  EXPECT_THAT(TakeAll(74), ElementsAre("just in time", "long", "too late"));
}

TEST_F(RequestQueueTest, SlicesTakeThePlaceOfTheirRequestAndLetShortRequestsPass) {
  queue_.AddSlices({Make("1"), Make("2"), Make("3")}, /*client=*/1, At(0), milliseconds(10));
  EXPECT_EQ(Take(0), "1");
  Add("short", {/*at=*/5, nullptr, 20, milliseconds(1)});
  EXPECT_THAT(TakeAll(6), ElementsAre("short", "2", "3"));
  EXPECT_EQ(queue_.requests(), 0);
}

TEST_F(RequestQueueTest, AFullQueueAcceptsSlices) {
  RequestQueue queue(/*max_requests=*/1);
  EXPECT_FALSE(queue.Add(Make("a"), {}, At(0)).has_value());
  queue.AddSlices({Make("slice")}, /*client=*/1, At(0), milliseconds(10));
  EXPECT_EQ(queue.Add(Make("b"), {}, At(0)), DropReason::kQueueFull);
  EXPECT_EQ(queue.requests(), 1);
}

TEST_F(RequestQueueTest, TheNewestRunsFirstIfTheOldestHasWaitedTooLong) {
  Add("old", {/*at=*/0, nullptr, 0, milliseconds(0), 1, /*due=*/50});
  Add("newer", {/*at=*/26, nullptr, 0, milliseconds(0), 1, /*due=*/76});
  Add("newest", {/*at=*/26, nullptr, 0, milliseconds(0), 1, /*due=*/76});
  EXPECT_THAT(TakeAll(26), ElementsAre("newest", "newer", "old"));
}

TEST_F(RequestQueueTest, ALongRequestCountsAsOlderWhenTheNewestRunsFirst) {
  Add("old", {/*at=*/0, nullptr, 0, milliseconds(0), 1, /*due=*/50});
  Add("short", {/*at=*/20, nullptr, 0, milliseconds(1), 1, /*due=*/90});
  Add("long", {/*at=*/26, nullptr, 0, milliseconds(10), 1, /*due=*/90});
  EXPECT_EQ(Take(26), "short");
}

TEST_F(RequestQueueTest, NoRequestWaitsForOneThatArrivesASecondLater) {
  Add("hours", {/*at=*/0, nullptr, 0, std::chrono::hours(2)});
  Add("short", {/*at=*/900, nullptr, 0, milliseconds(1)});
  Add("short, but later", {/*at=*/1100, nullptr, 0, milliseconds(1)});
  EXPECT_EQ(Take(1100), "short");
  EXPECT_EQ(Take(1100), "hours");
  EXPECT_EQ(Take(1100), "short, but later");
}

TEST_F(RequestQueueTest, OverdueRequestsOfAnyCostRunNewestFirst) {
  std::mt19937 draw(1);
  std::multimap<int, std::string, std::greater<>> by_age;
  for (int i = 0; i < 500; ++i) {
    const int at = i;
    const int cost = static_cast<int>(draw() % 20);
    const std::string name = std::to_string(i);
    Add(name, {at, nullptr, 0, milliseconds(cost), 1, /*due=*/1000});
    by_age.emplace(at - RequestQueue::kAgeing * cost, name);
  }
  const int now = 999;  // even the newest job has waited longer than its remaining time
  for (auto same = by_age.begin(); same != by_age.end();) {
    const auto end = by_age.upper_bound(same->first);
    std::set<std::string> expected, taken;
    for (; same != end; ++same) {
      expected.insert(same->second);
      taken.insert(Take(now));
    }
    EXPECT_EQ(taken, expected);
  }
  EXPECT_EQ(Take(now), "");
}

TEST_F(RequestQueueTest, OneRequestDoesNotWaitForAllRequestsOfAnotherClient) {
  const auto of_client = [](int at, uint64_t client) {
    return Request{at, nullptr, 20, milliseconds(1), 1, /*due=*/0, client};
  };
  for (int i = 0; i < 900; ++i) Add("busy", of_client(/*at=*/0, 1));
  EXPECT_EQ(Take(500), "busy");
  Add("little", of_client(/*at=*/500, 2));
  const std::vector<std::string> next = {Take(501), Take(502)};
  EXPECT_THAT(next, testing::Contains("little"));
}

TEST_F(RequestQueueTest, BusyClientsTakeTurns) {
  const auto of_client = [](uint64_t client) {
    return Request{/*at=*/0, nullptr, 20, milliseconds(1), 1, /*due=*/0, client};
  };
  for (int i = 0; i < 30; ++i) Add("a", of_client(1));
  for (int i = 0; i < 30; ++i) Add("b", of_client(2));
  std::map<std::string, int> taken;
  for (int i = 0; i < 20; ++i) ++taken[Take(10 + i)];
  EXPECT_EQ(taken["a"], 10);
  EXPECT_EQ(taken["b"], 10);
}

TEST_F(RequestQueueTest, ALongRequestAgesFromItsClientsLastTurn) {
  Add("long", {/*at=*/0, nullptr, 1000, milliseconds(10), 1, /*due=*/0, 1});
  Add("long", {/*at=*/0, nullptr, 1000, milliseconds(10), 1, /*due=*/0, 1});
  EXPECT_EQ(Take(0), "long");
  for (int at = 1; at <= 72; ++at) {
    Add("short", {at, nullptr, 20, milliseconds(1), 1, /*due=*/0, 2});
    EXPECT_EQ(Take(at), at < 72 ? "short" : "long") << at;
  }
}

TEST_F(RequestQueueTest, SlicesTakeTurnsWithOtherClients) {
  queue_.AddSlices({Make("1"), Make("2")}, /*client=*/1, At(0), milliseconds(4));
  EXPECT_EQ(Take(60'000), "1");  // both have waited for a minute
  Add("short", {/*at=*/60'001, nullptr, 20, milliseconds(1)});
  EXPECT_THAT(TakeAll(60'002), ElementsAre("short", "2"));
}

TEST_F(RequestQueueTest, ClientsTakeTurnsEvenIfTheNewestRunsFirst) {
  const auto of_client = [](int at, uint64_t client) {
    return Request{at, nullptr, 0, milliseconds(0), 1, /*due=*/at + 50, client};
  };
  for (int at = 0; at < 30; ++at) Add("busy " + std::to_string(at), of_client(at, 1));
  EXPECT_EQ(Take(30), "busy 29");
  Add("little", of_client(30, 2));
  Add("busy 31", of_client(31, 1));
  EXPECT_EQ(Take(31), "little");
  EXPECT_EQ(Take(31), "busy 31");
}

TEST_F(RequestQueueTest, ExpiredRequestsAreDequeuedFromTheHead) {
  Add("old", {/*at=*/0, nullptr, 0, milliseconds(0), 1, /*due=*/50});
  Add("new", {/*at=*/10, nullptr, 0, milliseconds(0), 1, /*due=*/60});
  const std::vector<Job*> expired = queue_.TakeExpired(At(50));
  ASSERT_EQ(expired.size(), 1);
  EXPECT_EQ(NameOf(expired[0]), "old");
  EXPECT_EQ(queue_.requests(), 1);
}

TEST_F(RequestQueueTest, RequestsOfOneClassAndGroupRunTogether) {
  RequestClass* const ranker = NewClass({});
  RequestClass* const other = NewClass({});
  Add("a", {0, ranker, 20});
  Add("other class", {0, other, 20});
  Add("other group", {0, ranker, 20, milliseconds(0), 2});
  Add("unknown", {});
  Add("b", {0, ranker, 20});
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b", "other class", "other group", "unknown"));
}

TEST_F(RequestQueueTest, RequestsWithoutAGroupOrWithJoiningOffRunAlone) {
  for (const char* name : {"a", "b"})
    Add(name, {0, NewClass({}), 20, milliseconds(0), /*group=*/0});
  EXPECT_THAT(TakeAll(1), ElementsAre("a", "b"));

  BatchLimits off;
  off.join = false;
  RequestClass* const of = NewClass(off);
  for (const char* name : {"a", "b"}) Add(name, {0, of, 20});
  EXPECT_THAT(TakeAll(1), ElementsAre("a", "b"));
}

TEST_F(RequestQueueTest, AJoinedRunKeepsToMaxRows) {
  BatchLimits limits;
  limits.max_rows = 50;
  RequestClass* const of = NewClass(limits);
  Add("a", {0, of, 20});
  Add("too large", {0, of, 31});
  Add("b", {0, of, 20});
  Add("c", {0, of, 20});
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b", "too large", "c"));
}

TEST_F(RequestQueueTest, AJoinedRunKeepsToMaxTimeGivenLearnedSavings) {
  BatchLimits limits;
  limits.max_time = milliseconds(9);
  RequestClass* const of = NewClass(limits);
  const auto add_five = [&] {
    for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, {0, of, 20, milliseconds(2)});
  };
  add_five();
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b + c + d", "e"));
  for (int i = 0; i < 100; ++i) of->joined().Observe(100, milliseconds(10), milliseconds(8));
  add_five();
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b + c + d + e"));
}

TEST_F(RequestQueueTest, RequestsRunTogetherOnlyUpToTheSizeThatPays) {
  RequestClass* const of = NewClass({});
  const auto add_four = [&] {
    for (const char* name : {"a", "b", "c", "d"}) Add(name, {0, of, 100});
  };
  add_four();
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b + c + d"));
  for (int i = 0; i < 100; ++i) {
    of->joined().Observe(200, milliseconds(10), milliseconds(8));
    of->joined().Observe(400, milliseconds(10), milliseconds(12));
  }
  add_four();
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b", "c + d"));
}

TEST_F(RequestQueueTest, EverySixteenthRunHasOneRequest) {
  RequestClass* const of = NewClass({});
  int alone = 0;
  for (int run = 0; run < 64; ++run) {
    Add("a", {0, of, 20});
    Add("b", {0, of, 20});
    const std::vector<std::string> runs = TakeAll(1);
    if (runs.size() == 2) ++alone;
  }
  EXPECT_EQ(alone, 4);
}

TEST_F(RequestQueueTest, AJoinedRunMayTakeFourTimesAsLongAsItsFirstRequest) {
  RequestClass* const of = NewClass({});
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, {0, of, 20, milliseconds(50)});
  EXPECT_THAT(TakeAll(1), ElementsAre("a + b + c + d", "e"));
}

TEST_F(RequestQueueTest, AWorkerLeavesFreeWorkersTheirShare) {
  RequestClass* const of = NewClass({});
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, {0, of, 20});
  takers_ = 2;
  EXPECT_EQ(Take(1), "a + b + c");
  takers_ = 1;
  EXPECT_EQ(Take(1), "d + e");
}

TEST_F(RequestQueueTest, ADequeuedRequestFindsCompanions) {
  RequestClass* const of = NewClass({});
  for (const char* name : {"a", "b", "c"}) Add(name, {0, of, 20});
  Add("of another class", {0, NewClass({}), 20});
  const JobProfile leader{of, /*group=*/1, /*rows=*/20};
  std::vector<Taken> companions;
  queue_.TakeCompanions(leader, At(1), /*takers=*/2, &companions);
  ASSERT_EQ(companions.size(), 1);  // half of the four jobs, minus the leader
  EXPECT_EQ(NameOf(companions.front().job), "a");
  EXPECT_EQ(companions.front().waited, milliseconds(1));
  queue_.TakeCompanions({}, At(1), /*takers=*/1, &companions);
  EXPECT_EQ(companions.size(), 1);
  EXPECT_THAT(TakeAll(1), ElementsAre("b + c", "of another class"));
}

TEST_F(RequestQueueTest, ARequestWaitsForOthersUntilItsTimeoutOrUntilTheBatchIsFull) {
  BatchLimits limits;
  limits.timeout = milliseconds(10);
  limits.max_rows = 50;
  RequestClass* const of = NewClass(limits);
  Add("a", {0, of, 20});
  EXPECT_EQ(Take(9), "");
  EXPECT_EQ(queue_.ReadyAt(At(9)), At(10));
  Add("b", {9, of, 20});
  EXPECT_EQ(Take(9), "");
  Add("unknown", {9});
  EXPECT_EQ(Take(9), "unknown");
  EXPECT_EQ(Take(10), "a + b");

  Add("c", {20, of, 30});
  Add("d", {20, of, 20});
  EXPECT_EQ(Take(20), "c + d");
  EXPECT_EQ(queue_.ReadyAt(At(20)), Clock::time_point::max());
}

TEST_F(RequestQueueTest, RowsBeyondMaxWaitingRowsAreRefused) {
  BatchLimits limits;
  limits.max_waiting_rows = 50;
  RequestClass* const of = NewClass(limits);
  EXPECT_EQ(Add("alone, however large", {0, of, 60}), "");
  EXPECT_EQ(Add("more", {0, of, 1}), "batch_queue_full");
  EXPECT_EQ(Add("another class", {0, NewClass(limits), 1}), "");
  EXPECT_THAT(TakeAll(1), ElementsAre("alone, however large", "another class"));
  EXPECT_EQ(Add("again", {1, of, 49}), "");
}

TEST_F(RequestQueueTest, HugeRowCountsAndCostsDoNotDelayOtherRequests) {
  RequestClass* const of = NewClass({});
  constexpr int64_t kRows = std::numeric_limits<int64_t>::max();
  constexpr std::chrono::hours kCenturies(200 * 365 * 24);
  EXPECT_EQ(Add("endless", {0, of, kRows, kCenturies}), "");
  EXPECT_EQ(Add("endless too", {0, of, kRows, kCenturies}), "");
  EXPECT_EQ(Add("short", {1, of, 20, milliseconds(1)}), "");
  EXPECT_THAT(TakeAll(2), ElementsAre("short", "endless", "endless too"));
  EXPECT_EQ(Add("again", {3, of, 20}), "");
}

TEST_F(RequestQueueTest, ARequeuedJobKeepsItsPlaceInAFullQueue) {
  BatchLimits limits;
  limits.max_waiting_rows = 20;
  RequestClass* const of = NewClass(limits);
  RequestQueue queue(/*max_requests=*/1);
  ASSERT_FALSE(queue.Add(Make("later"), {of, 1, 20}, At(5)).has_value());
  queue.AddAgain(Make("parsed"), {of, 2, 20}, At(0));
  EXPECT_EQ(queue.requests(), 2);
  Taken next;
  std::vector<Taken> companions;
  ASSERT_TRUE(queue.Take(At(8), /*takers=*/1, &next, &companions));
  EXPECT_EQ(NameOf(next.job), "parsed");
  EXPECT_EQ(next.waited, milliseconds(8));
}

TEST_F(RequestQueueTest, AJobWithoutMemoryLetsOthersPass) {
  RunBudget memory({/*max_bytes=*/100});
  RequestQueue queue(/*max_requests=*/10,
                     [&](const RunNeeds& needs) { return memory.MayRun(needs.bytes); });
  JobProfile profile;
  profile.needs.bytes = 60;
  queue.AddAgain(Make("large"), profile, At(0));
  queue.AddAgain(Make("small"), {}, At(1));
  Taken next;
  std::vector<Taken> companions;
  {
    RunBudget::Share share;
    ASSERT_EQ(memory.Reserve(50, &share), RunBudget::Answer::kYes);
    ASSERT_TRUE(queue.Take(At(2), /*takers=*/1, &next, &companions));
    EXPECT_EQ(NameOf(next.job), "small");
    EXPECT_FALSE(queue.Take(At(3), /*takers=*/1, &next, &companions));
    EXPECT_EQ(queue.ReadyAt(At(3)), Clock::time_point::max());
  }
  ASSERT_TRUE(queue.Take(At(4), /*takers=*/1, &next, &companions));
  EXPECT_EQ(NameOf(next.job), "large");
}

TEST_F(RequestQueueTest, EachJobIsDequeuedOnce) {
  std::mt19937 random(1);
  const auto draw = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  RequestClass* const of = NewClass({});
  std::vector<std::string> added;
  std::vector<std::string> taken;
  for (int now = 0; now < 3000; ++now) {
    if (draw(2) > 0) {
      const std::string name = std::to_string(now);
      Add(name, {now, draw(1) == 1 ? of : nullptr, draw(100), milliseconds(draw(20)), 1});
      added.push_back(name);
    }
    if (draw(2) > 0) continue;
    const std::string names = Take(now);
    for (size_t at = 0; at < names.size();) {
      const size_t end = std::min(names.find(" + ", at), names.size());
      taken.push_back(names.substr(at, end - at));
      at = end == names.size() ? end : end + 3;
    }
  }
  for (Job* const job : queue_.TakeAll()) taken.push_back(NameOf(job));
  EXPECT_THAT(taken, testing::UnorderedElementsAreArray(added));
  EXPECT_EQ(queue_.requests(), 0);
}

TEST(ClientOfTest, RequestsOfOneCallerHaveOneClientNumber) {
  EXPECT_EQ(ClientOf("batch"), ClientOf("batch"));
  EXPECT_NE(ClientOf("batch"), ClientOf("feed"));
  EXPECT_NE(ClientOf("batch"), 0);
}

TEST(ClientOfTest, OnlyShortPrintableNamesCount) {
  for (const std::string& sent :
       {std::string(), std::string(129, 'x'), std::string("caf\xc3\xa9"), std::string("a\nb")}) {
    EXPECT_EQ(ClientOf(sent), 0) << sent;
  }
}

}  // namespace
}  // namespace colcast::scheduling
