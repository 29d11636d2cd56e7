#include "server/inference/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/inference/testing.h"
#include "server/scheduling/testing.h"

namespace colcast::inference {
namespace {

using scheduling::CallingJob;
using scheduling::Clock;
using std::chrono::milliseconds;
using testing::HasSubstr;

// Fails requests with an input "bad" or "huge", answers all others, and takes time for each row.
class FakeModel final : public ModelWithoutGraph {
 public:
  FakeModel() : ModelWithoutGraph(SerializedGraph("signature_def { key: 'late' value {} }")) {}

  Status Answer(const DecodedRequest& request,
                std::unique_ptr<engine::Outputs>* outputs) const override {
    std::this_thread::sleep_for(time_per_run + time_per_row * RowsOf(request));
    ran_on_ = std::this_thread::get_id();
    ++runs;
    if (on_run) on_run();
    if (request.Find("bad") != nullptr) return InvalidArgument("a bad input");
    if (request.Find("huge") != nullptr) throw std::bad_alloc();
    *outputs = std::make_unique<GivenOutputs>();
    return OkStatus();
  }
  Status Check(const DecodedRequest& request) const override {
    return request.Find("wrong") != nullptr ? InvalidArgument("a wrong input") : OkStatus();
  }
  engine::RequestProfile Profile(const DecodedRequest& request) const override {
    ++profiles;
    return {RowsOf(request), /*group=*/1, can_be_split, size_of_row * RowsOf(request), 0};
  }
  std::unique_ptr<engine::Slices> Split(const engine::PlannedRequest& plan) const override {
    ran_on_ = std::this_thread::get_id();
    if (no_memory_in == "Split") throw std::bad_alloc();
    return std::make_unique<FakeSlices>(this, RowsOf(RequestOf(plan)));
  }

  // Whether the last request ran on the calling thread. REQUIRES that it has been answered.
  std::string WhereItRan() const {
    return ran_on_.load() == std::this_thread::get_id() ? "here" : "elsewhere";
  }

  std::chrono::microseconds time_per_run{0};
  std::chrono::microseconds time_per_row{0};
  bool can_be_split = true;
  bool joins = true;        // whether Slices::Join() succeeds
  int64_t size_of_row = 0;  // RequestProfile::size per row
  std::string no_memory_in;
  std::function<void()> on_run;  // called before each run of a whole request
  mutable std::atomic<int> profiles{0};
  mutable std::atomic<int> runs{0};
  mutable std::atomic<int> slices_run{0};

 private:
  static int64_t RowsOf(const DecodedRequest& request) { return request.columns()[0].dims.front(); }

  class FakeSlices final : public engine::Slices {
   public:
    FakeSlices(const FakeModel* model, int64_t rows) : model_(model), left_(rows) {}
    int64_t rows_left() const override {
      const std::lock_guard<std::mutex> lock(mutex_);
      return left_;
    }
    int Take(int64_t rows) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (left_ == 0) return -1;
      const int64_t count = (left_ + rows - 1) / rows;
      rows_.push_back((left_ + count - 1) / count);
      left_ -= rows_.back();
      return static_cast<int>(rows_.size()) - 1;
    }
    int64_t rows(int slice) const override {
      const std::lock_guard<std::mutex> lock(mutex_);
      return rows_[slice];
    }
    void Run(int slice) override {
      ++model_->slices_run;
      if (model_->no_memory_in == "a slice" && slice == 1) throw std::bad_alloc();
      std::this_thread::sleep_for(model_->time_per_run + model_->time_per_row * rows(slice));
    }
    Status Join(std::unique_ptr<engine::Outputs>* outputs) override {
      EXPECT_EQ(rows_left(), 0);
      if (model_->no_memory_in == "Join") throw std::bad_alloc();
      if (!model_->joins) return InvalidArgument("a slice has a bad row");
      *outputs = std::make_unique<GivenOutputs>();
      return OkStatus();
    }

   private:
    const FakeModel* const model_;
    mutable std::mutex mutex_;
    int64_t left_;
    std::vector<int64_t> rows_;  // rows of each slice
  };

  mutable std::atomic<std::thread::id> ran_on_;
};

struct Finished {
  Status status;
  metrics::CallRecord record;
};

class FakeRequest final : public scheduling::Job, public PredictMember {
 public:
  FakeRequest(std::shared_ptr<const Servable> servable, int64_t rows, std::string input = "x")
      : servable_(std::move(servable)), input_(std::move(input)) {
    request_.model_spec.signature_name = "late";
    request_.AddColumn(input_)->dims = {rows};
  }

  Clock::time_point deadline() const override { return Clock::time_point::max(); }
  bool cancelled() const override { return hung_up; }
  void Describe(scheduling::JobProfile* profile) override { DescribePredict(this, profile); }
  void Run(Clock::duration, std::vector<scheduling::Taken>*) override {}
  void Drop(scheduling::DropReason) override {}

  scheduling::Job* job() override { return this; }
  Status Read() override { return readable ? OkStatus() : InvalidArgument("unreadable"); }
  DecodedRequest& request() override { return request_; }
  const Servable& servable() const override { return *servable_; }
  const Signature* signature() const override { return servable_->Find("late"); }
  metrics::CallRecord* record() override { return &record_; }
  void Finish(const Status& status, const engine::Outputs*) override {
    finished_.set_value({status, record_});
  }

  Finished WaitUntilFinished() { return finished_.get_future().get(); }

  bool readable = true;
  std::atomic<bool> hung_up{false};

 private:
  const std::shared_ptr<const Servable> servable_;
  const std::string input_;
  DecodedRequest request_;
  metrics::CallRecord record_;
  std::promise<Finished> finished_;
};

class PredictRunTest : public testing::Test {
 protected:
  PredictRunTest() { Serve({}); }

  void Serve(const Batching& batching) {
    auto model = std::make_unique<FakeModel>();
    model_ = model.get();
    ASSERT_TRUE(Servable::Create("m", 1, std::move(model), &servable_, batching).ok());
  }
  void ServeSlicesOf(int64_t rows) {
    Batching batching;
    batching.limits.max_slice_rows = rows;
    Serve(batching);
  }
  scheduling::RequestClass& Class() { return *servable_->Find("late")->request_class; }

  void LearnMemory(int64_t input_bytes, int64_t bytes) {
    for (int i = 0; i < 2; ++i) Class().memory().Observe(input_bytes, bytes);
  }
  void Learn(std::chrono::microseconds per_row) {
    Class().NoteRun();
    for (const int64_t rows : {10, 1000}) Class().cost().Observe(rows, per_row * rows);
  }

  static Finished Run(FakeRequest* request, scheduling::WorkerPool* workers) {
    RunPredict(request, milliseconds(3), {}, workers);
    return request->WaitUntilFinished();
  }
  Finished Run(int64_t rows, const std::string& input = "x") {
    FakeRequest request(servable_, rows, input);
    return Run(&request, &workers_);
  }
  Finished RunOnTwoIdleWorkers(int64_t rows) {
    AwaitIdle(workers_);
    return Run(rows);
  }
  // Runs a request of 20 rows with the others.
  Finished RunWith(std::vector<FakeRequest*> others, scheduling::WorkerPool* workers) {
    FakeRequest first(servable_, 20);
    std::vector<scheduling::Taken> companions;
    for (FakeRequest* const other : others) companions.push_back({other, milliseconds(1)});
    RunPredict(&first, milliseconds(3), companions, workers);
    return first.WaitUntilFinished();
  }
  scheduling::JobProfile ProfileOf(int64_t rows) {
    FakeRequest request(servable_, rows);
    scheduling::JobProfile profile;
    DescribePredict(&request, &profile);
    return profile;
  }

  static void AwaitIdle(const scheduling::WorkerPool& workers) {
    while (workers.idle_workers() < 2) std::this_thread::yield();
  }
  static scheduling::WorkerPool::Options WithWorkers(int number, int long_request_nice = 0) {
    scheduling::WorkerPool::Options options;
    options.num_workers = number;
    options.long_request_nice = long_request_nice;
    return options;
  }
  static scheduling::WorkerPool::Options WithMemory(int64_t bytes) {
    scheduling::WorkerPool::Options options = WithWorkers(2);
    options.memory.max_bytes = bytes;
    return options;
  }

  FakeModel* model_ = nullptr;
  std::shared_ptr<const Servable> servable_;
  scheduling::WorkerPool workers_{WithWorkers(2)};
};

TEST_F(PredictRunTest, ASingleRequestIsRecordedAsARunOfOne) {
  const Finished finished = Run(20);
  EXPECT_TRUE(finished.status.ok());
  EXPECT_EQ(finished.record.queue_wait, milliseconds(3));
  EXPECT_EQ(finished.record.run_requests, 1);
  EXPECT_EQ(finished.record.run_rows, 20);
  EXPECT_FALSE(finished.record.joined);
}

TEST_F(PredictRunTest, JoinedRequestsHaveTheirOwnStatusAndTheFirstRecordsTheRun) {
  FakeRequest bad(servable_, 20, "bad");
  FakeRequest unreadable(servable_, 20);
  unreadable.readable = false;
  FakeRequest last(servable_, 30);
  const Finished of_first = RunWith({&bad, &unreadable, &last}, &workers_);
  EXPECT_TRUE(of_first.status.ok());
  EXPECT_EQ(of_first.record.run_requests, 3);
  EXPECT_EQ(of_first.record.run_rows, 70);
  EXPECT_EQ(bad.WaitUntilFinished().status.message, "a bad input");
  EXPECT_EQ(unreadable.WaitUntilFinished().status.message, "unreadable");
  const Finished of_last = last.WaitUntilFinished();
  EXPECT_TRUE(of_last.status.ok());
  EXPECT_TRUE(of_last.record.joined);
  EXPECT_EQ(of_last.record.requests_in_run, 3);
  EXPECT_EQ(of_last.record.queue_wait, milliseconds(1));
  EXPECT_EQ(of_last.record.run_requests, 0);
}

TEST_F(PredictRunTest, ARequestThatRunsOutOfMemoryFailsAlone) {
  const Status alone = Run(20, "huge").status;
  EXPECT_EQ(alone.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(alone.message, HasSubstr("no memory"));

  FakeRequest again(servable_, 20, "huge"), last(servable_, 20);
  EXPECT_TRUE(RunWith({&again, &last}, &workers_).status.ok());
  EXPECT_EQ(again.WaitUntilFinished().status.code, StatusCode::kResourceExhausted);
  EXPECT_TRUE(last.WaitUntilFinished().status.ok());
}

TEST_F(PredictRunTest, ASlicedRequestIsAnsweredOnceWhereverMemoryRunsOut) {
  for (const char* const where : {"a slice", "Join", "Split"}) {
    ServeSlicesOf(4);
    model_->no_memory_in = where;
    const Finished finished = Run(10);
    if (where == std::string("Split")) {  // the memory suffices for the whole request
      EXPECT_TRUE(finished.status.ok());
      EXPECT_EQ(finished.record.run_rows, 10);
    } else {
      EXPECT_EQ(finished.status.code, StatusCode::kResourceExhausted) << where;
    }
  }
}

TEST_F(PredictRunTest, RowsBeyondMaxBatchSizeAreRefused) {
  Batching batching;
  batching.limits.max_request_rows = 10;
  Serve(batching);
  const Status status = Run(11).status;
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message, HasSubstr("Task size 11 is larger than maximum input batch size 10"));
  EXPECT_EQ(ProfileOf(11).request_class, nullptr);
  EXPECT_EQ(ProfileOf(11).rows, 0);
}

TEST_F(PredictRunTest, ALargeRequestIsSplitForIdleWorkers) {
  Learn(std::chrono::microseconds(10));
  const Finished finished = RunOnTwoIdleWorkers(1000);
  EXPECT_TRUE(finished.status.ok());
  // one slice for each of two idle workers, and one for the worker that runs the request
  EXPECT_GE(finished.record.slices, 3);
  EXPECT_EQ(model_->slices_run, finished.record.slices);
  EXPECT_EQ(finished.record.run_requests, 0);
}

TEST_F(PredictRunTest, SlicesOfACancelledRequestAreDropped) {
  Learn(std::chrono::microseconds(10));
  AwaitIdle(workers_);
  FakeRequest request(servable_, 1000);
  request.hung_up = true;
  EXPECT_EQ(Run(&request, &workers_).status.code, StatusCode::kCancelled);
  EXPECT_EQ(model_->slices_run, 0);
  EXPECT_EQ(workers_.dropped(scheduling::DropReason::kCancelled), 1);
}

TEST_F(PredictRunTest, OnlyAShortRequestTakesCompanionsThatArriveWhileItIsRead) {
  model_->can_be_split = false;
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithWorkers(1));
  std::promise<void> started, release;
  workers.Submit(new scheduling::BlockingJob(&started, release.get_future().share()));
  started.get_future().wait();
  FakeRequest waiting(servable_, 20), large(servable_, 500), small(servable_, 20);
  workers.Submit(&waiting);
  EXPECT_FALSE(Run(&large, &workers).record.joined);
  EXPECT_EQ(workers.queued(), 1);
  EXPECT_EQ(Run(&small, &workers).record.run_rows, 40);
  EXPECT_TRUE(waiting.WaitUntilFinished().record.joined);
  EXPECT_EQ(workers.queued(), 0);
  release.set_value();
}

TEST_F(PredictRunTest, AnUnsplitLongRequestRunsAtLowPriorityBesideShortOnes) {
  model_->can_be_split = false;
  model_->time_per_row = std::chrono::microseconds(10);
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithWorkers(2, /*long_request_nice=*/10));
  FakeRequest first(servable_, 1000), small(servable_, 20), then(servable_, 1000);
  Run(&first, &workers);
  EXPECT_EQ(model_->WhereItRan(), "here");  // no short request has arrived
  Run(&small, &workers);
  EXPECT_EQ(model_->WhereItRan(), "here");
  const Finished finished = Run(&then, &workers);
  EXPECT_EQ(model_->WhereItRan(), "elsewhere");
  EXPECT_TRUE(finished.status.ok());
  EXPECT_GE(finished.record.queue_wait, milliseconds(3));
  EXPECT_EQ(finished.record.run_rows, 1000);
}

TEST_F(PredictRunTest, ALowPriorityRequestDoesNotRunWithOthers) {
  model_->can_be_split = false;
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithWorkers(2, /*long_request_nice=*/10));
  workers.short_requests().Note();
  FakeRequest large(servable_, 1000), other(servable_, 20);
  EXPECT_EQ(RunWith({&large, &other}, &workers).record.run_rows, 40);
  EXPECT_FALSE(large.WaitUntilFinished().record.joined);
  EXPECT_TRUE(other.WaitUntilFinished().record.joined);
}

TEST_F(PredictRunTest, ARequestBeyondTheMemoryLimitIsRefusedBeforeItRuns) {
  model_->can_be_split = false;
  scheduling::WorkerPool workers(WithMemory(1 << 20));
  FakeRequest attack(servable_, 1 << 20), small(servable_, 20);
  const Status status = Run(&attack, &workers).status;
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, HasSubstr("1048576 rows, 16 MiB of inputs"));
  EXPECT_THAT(status.message, HasSubstr("--max_run_bytes is 1048576"));
  // a request's own error takes precedence over its need for memory
  FakeRequest wrong(servable_, int64_t{1} << 60, "wrong");
  EXPECT_EQ(Run(&wrong, &workers).status.message, "a wrong input");
  EXPECT_EQ(model_->runs, 0);
  EXPECT_TRUE(Run(&small, &workers).status.ok());
}

TEST_F(PredictRunTest, SlicesFitTheMemoryLimit) {
  Learn(std::chrono::microseconds(0));
  LearnMemory(16 * 20, 16 * 20);
  scheduling::WorkerPool workers(WithMemory(1 << 20));
  FakeRequest request(servable_, 1 << 20);
  workers.Submit(new CallingJob([&] { RunPredict(&request, milliseconds(0), {}, &workers); }));
  EXPECT_TRUE(request.WaitUntilFinished().status.ok());
  EXPECT_EQ(model_->runs, 0);
  EXPECT_GE(model_->slices_run, 32);  // each of the two workers may use half of the memory
}

TEST_F(PredictRunTest, ARequestWhoseSlicesFailRunsWholeWithinTheMemoryLimit) {
  for (const bool is_enough : {true, false}) {
    ServeSlicesOf(1000);
    LearnMemory(16 * 20, 16 * 20);
    model_->joins = false;
    scheduling::WorkerPool workers(WithMemory(is_enough ? 1 << 20 : 1 << 16));
    FakeRequest request(servable_, 10'000);
    const Status status = Run(&request, &workers).status;
    EXPECT_GE(model_->slices_run, 10);
    EXPECT_EQ(model_->runs, is_enough ? 1 : 0);
    EXPECT_EQ(status.code, is_enough ? StatusCode::kOk : StatusCode::kResourceExhausted);
  }
}

TEST_F(PredictRunTest, SmallRequestsRunWhileLargeOnesWaitForMemory) {
  model_->can_be_split = false;
  LearnMemory(16 * 20, 16 * 20);
  scheduling::WorkerPool workers(WithMemory(1 << 20));
  std::promise<void> started, release;
  model_->on_run = [&] {
    if (model_->runs > 1) return;
    started.set_value();
    release.get_future().wait();
  };
  FakeRequest first(servable_, 40'000), second(servable_, 40'000), small(servable_, 20);
  const auto submit = [&](FakeRequest* request) {
    workers.Submit(
        new CallingJob([=, &workers] { RunPredict(request, milliseconds(0), {}, &workers); }));
  };
  submit(&first);
  started.get_future().wait();
  submit(&second);
  submit(&small);
  EXPECT_TRUE(small.WaitUntilFinished().status.ok());
  EXPECT_EQ(model_->runs, 2);
  release.set_value();
  EXPECT_TRUE(first.WaitUntilFinished().status.ok());
  EXPECT_TRUE(second.WaitUntilFinished().status.ok());
}

// The first run includes compilation, so its time must not count as the cost of a row.
TEST_F(PredictRunTest, TheFirstRunsTimeIsNotLearned) {
  model_->time_per_run = milliseconds(20);
  Run(2);
  EXPECT_EQ(Class().cost().Of(20), milliseconds(0));
  Run(2);
  EXPECT_GE(Class().cost().Of(2), milliseconds(20));
}

TEST_F(PredictRunTest, AWrongEstimateIsCorrectedWhileARequestRuns) {
  Learn(milliseconds(50));
  workers_.short_requests().Note();
  EXPECT_TRUE(Run(262'144).status.ok());
  EXPECT_LE(model_->slices_run, 262'144 / 100);  // the estimate asks for slices of one row
}

TEST_F(PredictRunTest, CostsAreLearnedFromSlices) {
  ServeSlicesOf(400);
  Class().NoteRun();
  model_->time_per_row = milliseconds(1);
  EXPECT_GE(Run(1000).record.slices, 3);
  EXPECT_GE(Class().cost().Of(1000), milliseconds(900));
}

TEST_F(PredictRunTest, ARequestWithLargeRowsIsSplit) {
  Learn(std::chrono::microseconds(1));
  model_->time_per_row = std::chrono::microseconds(1);
  RunOnTwoIdleWorkers(200);
  EXPECT_EQ(model_->slices_run, 0);
  model_->size_of_row = 100;  // raises the estimated cost to 20 ms
  EXPECT_GT(RunOnTwoIdleWorkers(200).record.slices, 1);
}

TEST_F(PredictRunTest, ALowPriorityRequestsCostExcludesPreemption) {
  model_->can_be_split = false;
  Learn(std::chrono::microseconds(10));
  const auto before = Class().cost().Of(1000);
  model_->time_per_row = milliseconds(1);  // the run sleeps, which takes no CPU time
  scheduling::WorkerPool workers(WithWorkers(2, /*long_request_nice=*/10));
  workers.short_requests().Note();
  FakeRequest request(servable_, 1000);
  Run(&request, &workers);
  EXPECT_LE(Class().cost().Of(1000), before);
}

TEST_F(PredictRunTest, APaddedRequestIsSplitOnlyBeyondTheLargestSlice) {
  Batching batching;
  batching.rules.allowed_batch_sizes = {1000};
  Serve(batching);
  Learn(std::chrono::microseconds(10));
  EXPECT_EQ(RunOnTwoIdleWorkers(1000).record.run_rows, 1000);
  EXPECT_EQ(model_->slices_run, 0);
}

TEST_F(PredictRunTest, TheProfileHasClassRowsAndCost) {
  Learn(std::chrono::microseconds(10));
  const scheduling::JobProfile profile = ProfileOf(1000);
  EXPECT_EQ(profile.request_class, &Class());
  EXPECT_EQ(profile.group, 1);
  EXPECT_EQ(profile.rows, 1000);
  EXPECT_NEAR(std::chrono::duration<double>(profile.cost).count(), 0.01, 0.001);
  EXPECT_EQ(ProfileOf(INT64_MAX).rows, scheduling::JobProfile::kMaxRows);
  EXPECT_GT(ProfileOf(INT64_MAX).cost, milliseconds(0));
}

TEST_F(PredictRunTest, ARequestIsPlannedOnce) {
  FakeRequest first(servable_, 20);
  FakeRequest second(servable_, 30);
  scheduling::JobProfile profile;
  for (FakeRequest* const request : {&first, &second, &first}) DescribePredict(request, &profile);
  RunPredict(&first, milliseconds(0), {{&second, milliseconds(0)}}, &workers_);
  EXPECT_TRUE(second.WaitUntilFinished().record.joined);
  EXPECT_EQ(model_->profiles, 2);
}

TEST(PaddingBytesTest, ListsArePaddedToTheLongest) {
  DecodedRequest one, other;
  const auto add = [](DecodedRequest* request, const char* name, std::vector<int64_t> dims) {
    Column* const column = request->AddColumn(name);
    column->dtype = DT_FLOAT;
    column->dims = std::move(dims);
  };
  add(&one, "id", {20});
  add(&one, "history", {1, 1000});
  add(&other, "history", {1, 10});
  add(&other, "id", {30});
  EXPECT_EQ(PaddingBytes({{&one, 20}, {&other, 30}}), 30 * (1000 - 10) * 4);
  EXPECT_EQ(PaddingBytes({{&one, 20}, {&one, 20}}), 0);
}

}  // namespace
}  // namespace colcast::inference
