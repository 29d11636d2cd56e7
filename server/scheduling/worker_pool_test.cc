#include "server/scheduling/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// What became of the jobs, in order: "ran a", "dropped b 1".
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
  void Run(Clock::duration) override {
    journal_->Write("ran " + name_);
    delete this;
  }
  void Drop(DropReason reason) override {
    static const char* const kNames[] = {"queue full", "deadline", "cancelled", "shutdown"};
    journal_->Write("dropped " + name_ + ": " + kNames[static_cast<int>(reason)]);
    delete this;
  }

 private:
  const std::string name_;
  Journal* const journal_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool cancelled_ = false;
};

// Keeps the pool's only worker busy until released.
class BlockingJob : public Job {
 public:
  BlockingJob(std::promise<void>* started, std::shared_future<void> released)
      : started_(started), released_(std::move(released)) {}
  Clock::time_point deadline() const override { return Clock::time_point::max(); }
  bool cancelled() const override { return false; }
  void Run(Clock::duration) override {
    started_->set_value();
    released_.wait();
    delete this;
  }
  void Drop(DropReason) override { delete this; }

 private:
  std::promise<void>* const started_;
  const std::shared_future<void> released_;
};

// Tells on which thread it ran.
class WhichThreadJob : public Job {
 public:
  explicit WhichThreadJob(std::promise<std::thread::id>* ran_on) : ran_on_(ran_on) {}
  Clock::time_point deadline() const override { return Clock::time_point::max(); }
  bool cancelled() const override { return false; }
  void Run(Clock::duration) override {
    ran_on_->set_value(std::this_thread::get_id());
    delete this;
  }
  void Drop(DropReason) override { delete this; }

 private:
  std::promise<std::thread::id>* const ran_on_;
};

class WorkerPoolTest : public testing::Test {
 protected:
  void Start(int max_queued_requests, int num_workers = 1) {
    WorkerPool::Options options;
    options.num_workers = num_workers;
    options.max_queued_requests = max_queued_requests;
    options.now = [this] { return now_.load(); };
    pool_ = std::make_unique<WorkerPool>(options);
  }
  void Block() {
    std::promise<void> started;
    pool_->Submit(new BlockingJob(&started, release_.get_future().share()));
    started.get_future().wait();
  }
  NamedJob* Make(const std::string& name) { return new NamedJob(name, &journal_); }

  Journal journal_;
  std::atomic<Clock::time_point> now_{Clock::time_point(milliseconds(1000))};
  std::promise<void> release_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, TheWorkerThatBecameIdleLastTakesTheNextRequest) {
  constexpr int kWorkers = 4;
  Start(10, kWorkers);
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    while (pool_->idle_workers() < kWorkers) std::this_thread::yield();
    std::promise<std::thread::id> ran_on;
    pool_->Submit(new WhichThreadJob(&ran_on));
    threads.insert(ran_on.get_future().get());
  }
  EXPECT_EQ(threads.size(), 1);
}

TEST_F(WorkerPoolTest, RunsInTheOrderOfArrival) {
  Start(10);
  Block();
  for (const char* name : {"a", "b", "c"}) pool_->Submit(Make(name));
  EXPECT_EQ(pool_->queued(), 3);
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(3), ElementsAre("ran a", "ran b", "ran c"));
}

TEST_F(WorkerPoolTest, RunsTheNewestFirstOnceTheOldestHasWaitedLongerThanItHasLeft) {
  Start(10);
  Block();
  const Clock::time_point start = now_;
  pool_->Submit(Make("old")->DueAt(start + milliseconds(50)));
  now_ = start + milliseconds(26);
  pool_->Submit(Make("newer")->DueAt(start + milliseconds(76)));
  pool_->Submit(Make("newest")->DueAt(start + milliseconds(76)));
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(3), ElementsAre("ran newest", "ran newer", "ran old"));
}

TEST_F(WorkerPoolTest, WithoutDeadlinesTheOrderIsAlwaysThatOfArrival) {
  Start(10);
  Block();
  pool_->Submit(Make("old"));
  now_ = now_.load() + milliseconds(60'000);
  pool_->Submit(Make("new"));
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("ran old", "ran new"));
}

TEST_F(WorkerPoolTest, DropsAtOnceWhenTheQueueIsFull) {
  Start(1);
  Block();
  pool_->Submit(Make("waits"));
  pool_->Submit(Make("refused"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped refused: queue full"));
  EXPECT_EQ(pool_->dropped(DropReason::kQueueFull), 1);
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("dropped refused: queue full", "ran waits"));
}

TEST_F(WorkerPoolTest, AnExpiredRequestGivesItsPlaceToANewOne) {
  Start(1);
  Block();
  pool_->Submit(Make("old")->DueAt(now_.load() + milliseconds(50)));
  now_ = now_.load() + milliseconds(50);
  pool_->Submit(Make("new"));
  EXPECT_THAT(journal_.WaitFor(1), ElementsAre("dropped old: deadline"));
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(2), ElementsAre("dropped old: deadline", "ran new"));
}

TEST_F(WorkerPoolTest, NeverRunsWhatIsLateOrHungUp) {
  Start(10);
  Block();
  pool_->Submit(Make("in time")->DueAt(now_.load() + milliseconds(100)));
  pool_->Submit(Make("late")->DueAt(now_.load() + milliseconds(10)));
  pool_->Submit(Make("gone")->HungUp());
  now_ = now_.load() + milliseconds(20);
  release_.set_value();
  EXPECT_THAT(journal_.WaitFor(3),
              ElementsAre("ran in time", "dropped late: deadline", "dropped gone: cancelled"));
  EXPECT_EQ(pool_->dropped(DropReason::kDeadlineExceeded), 1);
  EXPECT_EQ(pool_->dropped(DropReason::kCancelled), 1);
}

TEST_F(WorkerPoolTest, ShutsDownAfterWhatRunsAndDropsWhatWaits) {
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

}  // namespace
}  // namespace colcast::scheduling
