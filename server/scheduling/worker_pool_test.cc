#include "server/scheduling/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/scheduling/testing.h"

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Collects the outcomes of jobs, in order: "ran a", "dropped b: queue_full".
class Journal {
 public:
  void Write(std::string line) {
    std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::vector<std::string> WaitFor(size_t lines) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= lines; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class NamedJob : public Job {
 public:
  NamedJob(std::string name, Journal* journal) : name_(std::move(name)), journal_(journal) {}
  NamedJob* DueAt(Clock::time_point deadline) {
    deadline_ = deadline;
    return this;
  }
  NamedJob* HungUp() {
    cancelled_ = true;
    return this;
  }
  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return cancelled_; }
  void Run(Clock::duration, std::vector<Taken>*) override {
    journal_->Write("ran " + name_);
    delete this;
  }
  void Drop(DropReason reason) override {
    journal_->Write("dropped " + name_ + ": " + DropReasonName(reason));
    delete this;
  }

 private:
  const std::string name_;
  Journal* const journal_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool cancelled_ = false;
};

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

class WorkerPoolTest : public testing::Test {
 protected:
  static constexpr milliseconds kLong{10};  // the cost of a long request

  void Start(int max_queued_requests, int num_workers = 1, int long_request_nice = 0) {
    WorkerPool::Options options;
    options.long_request_nice = long_request_nice;
    options.num_workers = num_workers;
    options.max_queued_requests = max_queued_requests;
    options.now = [this] { return now_.load(); };
    pool_ = std::make_unique<WorkerPool>(options);
  }
  // Starts a pool in which requests may wait for others even if a worker is idle.
  void StartWithFillingBatches() {
    WorkerPool::Options options;
    options.describe_all = true;
    pool_ = std::make_unique<WorkerPool>(options);
  }
  static BatchLimits FullRunsOnly() {
    BatchLimits limits;
    limits.timeout = std::chrono::hours(1);
    limits.max_rows = 20;
    return limits;
  }
  void Block() {
    std::promise<void> started;
    pool_->Submit(new BlockingJob(&started, release_.get_future().share()));
    started.get_future().wait();
  }
  // Simulates a short request, then blocks a low-priority thread and returns while it is blocked.
  void BlockLongRequests() {
    std::promise<void> started;
    pool_->short_requests().Note();
    pool_->SubmitSlices({new BlockingJob(&started, release_.get_future().share())}, now_.load(),
                        kLong);
    started.get_future().wait();
  }
  int NiceOf(Clock::duration cost) {
    std::promise<int> nice;
    // SubmitSlices() expects its caller to run one slice, so add one.
    const auto report = [&nice] { nice.set_value(NiceOfThisThread()); };
    pool_->SubmitSlices({new CallingJob(report), Make("for the splitting worker")}, now_.load(),
                        cost);
    return nice.get_future().get();
  }
  NamedJob* Make(const std::string& name) { return new NamedJob(name, &journal_); }
  static Job* Throwing() {
    return new CallingJob([] { throw std::runtime_error("no such row"); });
  }

  Journal journal_;
  std::atomic<Clock::time_point> now_{Clock::time_point(milliseconds(1000))};
  std::promise<void> release_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, AWorkerContinuesAfterAnException) {
  Start(10);
  testing::internal::CaptureStderr();
  pool_->Submit(Throwing());
  pool_->Submit(Make("a"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran a"));
  while (pool_->idle_workers() < 1) std::this_thread::yield();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("worker_0: no such row"));
  StartWithFillingBatches();  // destroys the first pool
}

TEST_F(WorkerPoolTest, AFullQueueDropsARequestImmediately) {
  Start(1);
  Block();
  pool_->Submit(Make("waits"));
  pool_->Submit(Make("refused"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped refused: queue_full"));
  EXPECT_EQ(pool_->dropped(DropReason::kQueueFull), 1);
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("dropped refused: queue_full", "ran waits"));
}

TEST_F(WorkerPoolTest, AnExpiredRequestGivesItsPlaceToANewOne) {
  Start(1);
  Block();
  pool_->Submit(Make("old")->DueAt(now_.load() + milliseconds(50)));
  now_ = now_.load() + milliseconds(50);
  pool_->Submit(Make("new"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped old: deadline_exceeded"));
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("dropped old: deadline_exceeded", "ran new"));
}

TEST_F(WorkerPoolTest, LateAndCancelledRequestsDoNotRun) {
  Start(10);
  Block();
  pool_->Submit(Make("in time")->DueAt(now_.load() + milliseconds(100)));
  pool_->Submit(Make("late")->DueAt(now_.load() + milliseconds(10)));
  pool_->Submit(Make("gone")->HungUp());
  now_ = now_.load() + milliseconds(20);
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(3), ElementsAre("ran in time", "dropped late: deadline_exceeded",
                                               "dropped gone: cancelled"));
  EXPECT_EQ(pool_->dropped(DropReason::kDeadlineExceeded), 1);
  EXPECT_EQ(pool_->dropped(DropReason::kCancelled), 1);
}

TEST_F(WorkerPoolTest, ShutdownDropsWaitingRequestsAndAwaitsRunningOnes) {
  Start(10);
  Block();
  pool_->Submit(Make("waiting"));
  std::thread release([this] {
    journal_.WaitFor(1);
    release_.set_value();
  });
  pool_.reset();
  release.join();
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped waiting: shutdown"));
}

// Writes its companions to the journal; sets its profile only in Describe().
class SignatureJob : public NamedJob {
 public:
  SignatureJob(std::string name, RequestClass* of, Journal* journal)
      : NamedJob(name, journal), name_(std::move(name)), class_(of), journal_(journal) {}
  void Describe(JobProfile* profile) override {
    profile->request_class = class_;
    profile->group = 1;
    profile->rows = 10;
  }
  void Run(Clock::duration, std::vector<Taken>* companions) override {
    std::string line = "ran " + name_;
    for (const Taken& taken : *companions) {
      auto* const job = static_cast<SignatureJob*>(taken.job);
      line += " + " + job->name_;
      delete job;
    }
    journal_->Write(line);
    delete this;
  }

 private:
  const std::string name_;
  RequestClass* const class_;
  Journal* const journal_;
};

TEST_F(WorkerPoolTest, WaitingRequestsRunTogetherWithoutCancelledOnes) {
  Start(10);
  RequestClass of({});
  Block();
  for (const char* name : {"a", "b", "c"}) {
    pool_->Submit(new SignatureJob(name, &of, &journal_));
  }
  NamedJob* const gone = new SignatureJob("gone", &of, &journal_);
  pool_->Submit(gone->HungUp());
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("dropped gone: cancelled", "ran a + b + c"));
}

// Learns its profile when it runs, and then takes companions.
class ReadLaterJob final : public SignatureJob {
 public:
  ReadLaterJob(WorkerPool* pool, RequestClass* of, Journal* journal,
               std::shared_future<void> others_wait)
      : SignatureJob("read later", of, journal),
        pool_(pool),
        others_wait_(std::move(others_wait)) {}
  void Describe(JobProfile*) override {}
  void Run(Clock::duration waited, std::vector<Taken>* companions) override {
    others_wait_.wait();
    JobProfile profile;
    SignatureJob::Describe(&profile);
    pool_->TakeCompanions(profile, companions);
    SignatureJob::Run(waited, companions);
  }

 private:
  WorkerPool* const pool_;
  const std::shared_future<void> others_wait_;
};

TEST_F(WorkerPoolTest, ARunningJobTakesCompanionsThatArrivedMeanwhile) {
  Start(10);
  RequestClass of({});
  RequestClass another({});
  std::promise<void> others_wait;
  pool_->Submit(new ReadLaterJob(pool_.get(), &of, &journal_, others_wait.get_future().share()));
  while (pool_->idle_workers() + pool_->queued() > 0) std::this_thread::yield();
  NamedJob* const gone = new SignatureJob("gone", &of, &journal_);
  pool_->Submit(gone->HungUp());
  pool_->Submit(new SignatureJob("a", &of, &journal_));
  pool_->Submit(new SignatureJob("of another class", &another, &journal_));
  pool_->Submit(new SignatureJob("b", &of, &journal_));
  others_wait.set_value();
  EXPECT_THAT(journal_.WaitFor(3), ElementsAre("dropped gone: cancelled", "ran read later + a + b",
                                               "ran of another class"));
}

// Learns its profile when it is dequeued, and calls `again` to requeue itself.
class ParsedJob final : public SignatureJob {
 public:
  ParsedJob(RequestClass* of, Journal* journal, std::function<bool(Job*, Clock::duration)> again)
      : SignatureJob("parsed", of, journal), again_(std::move(again)) {}
  void Describe(JobProfile* profile) override {
    if (again_ == nullptr) SignatureJob::Describe(profile);
  }
  void Run(Clock::duration waited, std::vector<Taken>* companions) override {
    if (again_ == nullptr || !std::exchange(again_, nullptr)(this, waited)) {
      SignatureJob::Run(waited, companions);
    }
  }

 private:
  std::function<bool(Job*, Clock::duration)> again_;
};

// A job that expects SubmitAgain() to return `waits_again`.
Job* Parsed(WorkerPool* pool, RequestClass* of, Journal* journal, bool waits_again) {
  return new ParsedJob(of, journal, [=](Job* job, Clock::duration waited) {
    const bool again = pool->SubmitAgain(job, waited);
    EXPECT_EQ(again, waits_again);
    return again;
  });
}

TEST_F(WorkerPoolTest, JobsThatCannotJoinOrAreAloneAreNotRequeued) {
  Start(10);
  Block();
  BatchLimits off;
  off.join = false;
  RequestClass never(off);
  RequestClass of({});
  pool_->Submit(new ParsedJob(&never, &journal_, [&](Job* job, Clock::duration waited) {
    pool_->Submit(Make("later"));
    const bool again = pool_->SubmitAgain(job, waited);
    EXPECT_FALSE(again);
    return again;
  }));
  release_.set_value();
  journal_.WaitFor(2);
  pool_->Submit(Parsed(pool_.get(), &of, &journal_, /*waits_again=*/false));
  EXPECT_THAT(journal_.WaitFor(3), ElementsAre("ran parsed", "ran later", "ran parsed"));
}

TEST_F(WorkerPoolTest, AJobReadByItsWorkerMayWaitForABatch) {
  StartWithFillingBatches();
  RequestClass of(FullRunsOnly());
  pool_->Submit(Parsed(pool_.get(), &of, &journal_, /*waits_again=*/true));
  pool_->Submit(new SignatureJob("company", &of, &journal_));
  EXPECT_THAT(journal_.WaitFor(1),
              ElementsAre(AnyOf("ran parsed + company", "ran company + parsed")));
}

TEST_F(WorkerPoolTest, SlicesRunOnIdleWorkers) {
  Start(10, 3);
  while (pool_->idle_workers() < 3) std::this_thread::yield();
  std::promise<void> started[2];
  const std::shared_future<void> released = release_.get_future().share();
  std::vector<Job*> slices = {Make("by the splitting worker")};
  for (std::promise<void>& one : started) slices.push_back(new BlockingJob(&one, released));
  pool_->SubmitSlices(slices, now_.load(), milliseconds(10));
  for (std::promise<void>& one : started) one.get_future().wait();
  EXPECT_EQ(pool_->queued(), 0);
  release_.set_value();
}

TEST_F(WorkerPoolTest, LongRequestsRunAtLowPriorityWhileShortOnesArrive) {
  Start(10, 1, /*long_request_nice=*/19);
  const int own = NiceOfThisThread();
  EXPECT_EQ(NiceOf(kLong), own);
  pool_->short_requests().Note();
  EXPECT_EQ(NiceOf(kLong), 19);
  EXPECT_EQ(NiceOf(milliseconds(1)), own);
  now_ = now_.load() + milliseconds(1001);
  EXPECT_EQ(NiceOf(kLong), own);
}

TEST_F(WorkerPoolTest, AWorkerWakesForASliceFromAnExtraThread) {
  Start(10, 1, /*long_request_nice=*/10);
  while (pool_->idle_workers() < 1) std::this_thread::yield();
  pool_->short_requests().Note();
  const auto call = [&] {
    EXPECT_TRUE(ThisThreadGivesWay());
    now_ = now_.load() + milliseconds(1001);  // no more short requests arrive
    pool_->SubmitSlices({Make("slice")}, now_.load(), kLong);
  };
  pool_->SubmitSlices({new CallingJob(call)}, now_.load(), kLong);
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran slice"));
}

TEST_F(WorkerPoolTest, AShortRequestDoesNotWaitForALowPriorityRequest) {
  Start(10, 1, /*long_request_nice=*/10);
  BlockLongRequests();
  pool_->Submit(Make("short"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran short"));
  release_.set_value();
}

TEST_F(WorkerPoolTest, ALongRequestStartsOnceAWorkerIsFree) {
  Start(10, 1, /*long_request_nice=*/10);
  Block();
  pool_->short_requests().Note();
  pool_->SubmitSlices({Make("long")}, now_.load(), kLong);
  pool_->Submit(Make("short"));
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("ran short", "ran long"));
}

TEST_F(WorkerPoolTest, ALongRequestStartsBesideBusyWorkersAfterEightTimesItsCost) {
  Start(10, 1, /*long_request_nice=*/10);
  Block();
  pool_->short_requests().Note();
  const Clock::time_point since = now_;
  now_ = since + 8 * kLong;
  pool_->short_requests().Note();
  pool_->SubmitSlices({Make("long")}, since, kLong);
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran long"));
  release_.set_value();
}

TEST_F(WorkerPoolTest, ALongRunDoesNotOccupyTheOnlyWorkerWhileShortRequestsArrive) {
  Start(10);
  const RunNeeds needs{0, std::chrono::seconds(1)};
  WorkerPool::Share share;
  EXPECT_EQ(pool_->Reserve(needs, &share), RunBudget::Answer::kYes);  // no other job runs
  pool_->short_requests().Note();
  EXPECT_EQ(pool_->Reserve(needs, &share), RunBudget::Answer::kLater);
  std::promise<void> started;
  const auto hold = [&] {
    WorkerPool::Share held;
    EXPECT_FALSE(ThisThreadIsNice());
    EXPECT_EQ(pool_->Reserve(needs, &held), RunBudget::Answer::kYes);
    started.set_value();
    release_.get_future().wait();
  };
  pool_->SubmitForLater(new CallingJob(hold), needs, now_.load(), kLong);
  started.get_future().wait();
  pool_->Submit(Make("short"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran short"));
  release_.set_value();
}

TEST_F(WorkerPoolTest, WaitingLongRequestsCountAsQueued) {
  Start(1, 1, /*long_request_nice=*/10);
  BlockLongRequests();
  pool_->SubmitSlices({Make("long"), Make("its second slice")}, now_.load(), kLong);
  EXPECT_EQ(pool_->queued(), 1);
  pool_->Submit(Make("refused"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped refused: queue_full"));
  release_.set_value();
  EXPECT_EQ(journal_.WaitFor(3).size(), 3);
}

TEST_F(WorkerPoolTest, WaitingLongRequestsAreDroppedOnExpiryAndAtShutdown) {
  Start(1, 1, /*long_request_nice=*/10);
  BlockLongRequests();
  pool_->SubmitSlices({Make("late")->DueAt(now_.load() + milliseconds(50))}, now_.load(), kLong);
  now_ = now_.load() + milliseconds(50);
  pool_->Submit(Make("has room"));
  EXPECT_THAT(journal_.WaitFor(2),
              UnorderedElementsAre("dropped late: deadline_exceeded", "ran has room"));
  pool_->SubmitSlices({Make("waits")}, now_.load(), kLong);
  std::thread release([this] {
    journal_.WaitFor(3);
    release_.set_value();
  });
  pool_.reset();
  release.join();
  EXPECT_EQ(journal_.WaitFor(3).back(), "dropped waits: shutdown");
}

TEST_F(WorkerPoolTest, ABatchOfOneRunsAfterItsTimeout) {
  StartWithFillingBatches();
  BatchLimits limits;
  limits.timeout = milliseconds(5);
  RequestClass of(limits);
  pool_->Submit(new SignatureJob("alone", &of, &journal_));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran alone"));
  while (pool_->idle_workers() != 1) std::this_thread::yield();  // it counts as one again
}

// An event source whose events a test triggers. Each is handled by one of the waiting threads.
class PuppetEvents final : public EventSource {
 public:
  bool Poll(Clock::time_point until) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto something = [this] { return woken_ || !events_.empty(); };
    if (until != Clock::time_point::min()) happened_.wait(lock, something);
    if (!events_.empty()) {
      const std::function<void()> event = std::move(events_.front());
      events_.pop_front();
      lock.unlock();
      event();
      return false;
    }
    return std::exchange(woken_, false);
  }
  void Wake() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    happened_.notify_one();
  }
  void Happen(std::function<void()> event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
    happened_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable happened_;
  std::deque<std::function<void()>> events_;
  bool woken_ = false;
};

class WorkersWaitForEventsTest : public testing::Test {
 protected:
  void Start(int num_workers) {
    WorkerPool::Options options;
    options.num_workers = num_workers;
    options.max_queued_requests = 10;
    options.events = &events_;
    pool_ = std::make_unique<WorkerPool>(options);
    AwaitIdle(num_workers);
  }
  void AwaitIdle(int num_workers) const {
    while (pool_->idle_workers() < num_workers) std::this_thread::yield();
  }
  // Destroys the pool before the promises that its jobs set.
  void Stop() { pool_.reset(); }

  PuppetEvents events_;
  Journal journal_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkersWaitForEventsTest, ARequestRunsOnTheThreadThatReadIt) {
  Start(4);
  std::deque<std::promise<std::thread::id>> promises;
  for (int i = 0; i < 20; ++i) {
    AwaitIdle(4);  // otherwise a worker that has just finished a request would take the next one
    auto& read_on = promises.emplace_back();
    auto& ran_on = promises.emplace_back();
    events_.Happen([&] {
      read_on.set_value(std::this_thread::get_id());
      pool_->Submit(new CallingJob([&] { ran_on.set_value(std::this_thread::get_id()); }));
    });
    EXPECT_EQ(read_on.get_future().get(), ran_on.get_future().get());
  }
  Stop();
}

TEST_F(WorkersWaitForEventsTest, TheSecondRequestOfAnEventGoesToAnotherWorker) {
  Start(2);
  std::promise<void> started, release;
  events_.Happen([&] {
    pool_->Submit(new BlockingJob(&started, release.get_future().share()));
    pool_->Submit(new NamedJob("second", &journal_));
  });
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran second"));
  release.set_value();
  Stop();
}

TEST_F(WorkersWaitForEventsTest, AnEventMaySubmitAJobToAnotherPool) {
  Start(1);
  WorkerPool other({});
  while (other.idle_workers() < 1) std::this_thread::yield();
  events_.Happen([&] { other.Submit(new NamedJob("elsewhere", &journal_)); });
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("ran elsewhere"));
  Stop();
}

TEST_F(WorkersWaitForEventsTest, AllWorkersWakeForJobsFromOtherThreads) {
  constexpr int kJobs = 4;
  Start(kJobs);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::vector<std::promise<void>> started(kJobs);
  for (auto& each : started) pool_->Submit(new BlockingJob(&each, released));
  for (auto& each : started) each.get_future().wait();  // all run at the same time
  release.set_value();
  Stop();
}

TEST_F(WorkersWaitForEventsTest, PendingEventsAreHandledBeforeARequestRuns) {
  Start(1);
  std::promise<void> started, release;
  pool_->Submit(new BlockingJob(&started, release.get_future().share()));
  started.get_future().wait();
  events_.Happen([&] { pool_->Submit(new NamedJob("first", &journal_)); });
  events_.Happen([&] { journal_.Write("read another"); });
  release.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("read another", "ran first"));
  Stop();
}

}  // namespace
}  // namespace colcast::scheduling
