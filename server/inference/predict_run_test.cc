#include "server/inference/predict_run.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/scheduling/testing.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using std::chrono::milliseconds;
using testing::HasSubstr;

class NoOutputs final : public engine::Outputs {
 public:
  const std::vector<OutputColumn>& columns() const override { return columns_; }
  const engine::ExpansionStats& expansion() const override { return expansion_; }

 private:
  std::vector<OutputColumn> columns_;
  engine::ExpansionStats expansion_;
};

// Answers every request but those with an input "bad", and takes its time for rows.
class FakeModel final : public engine::Model {
 public:
  FakeModel() {
    tensorflow::MetaGraphDef graph;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "signature_def { key: 'late' value {} }", &graph));
    signatures_ = graph.SerializeAsString();
  }

  const std::string& signatures() const override { return signatures_; }
  Status Predict(const DecodedRequest& request,
                 std::unique_ptr<engine::Outputs>* outputs) const override {
    std::this_thread::sleep_for(time_per_row * Profile(request, {}).rows);
    ran_on_ = std::this_thread::get_id();
    if (request.Find("bad") != nullptr) return InvalidArgument("a bad input");
    if (request.Find("huge") != nullptr) throw std::bad_alloc();
    *outputs = std::make_unique<NoOutputs>();
    return OkStatus();
  }
  Status PredictTogether(const DecodedRequest&, std::unique_ptr<engine::Outputs>*) const override {
    return Internal("not asked for");
  }
  engine::RequestProfile Profile(const DecodedRequest& request,
                                 const engine::BatchRules&) const override {
    const int64_t rows = request.column(0).dims.front();
    return {rows, /*group=*/1, divisible, size_of_row * rows};
  }
  std::unique_ptr<engine::Pieces> Divide(const DecodedRequest& request, const engine::BatchRules&,
                                         int64_t rows_per_piece) const override {
    ran_on_ = std::this_thread::get_id();
    if (no_memory_in == "Divide") throw std::bad_alloc();
    const int64_t rows = Profile(request, {}).rows;
    return std::make_unique<FakePieces>(this, (rows + rows_per_piece - 1) / rows_per_piece);
  }

  // The last request; once it has been answered.
  std::string WhereItRan() const {
    return ran_on_.load() == std::this_thread::get_id() ? "here" : "elsewhere";
  }

  std::chrono::microseconds time_per_row{0};
  bool divisible = true;
  int64_t size_of_row = 0;  // its rows say how large a request is
  std::string no_memory_in;
  mutable std::atomic<int> pieces_run{0};

 private:
  class FakePieces final : public engine::Pieces {
   public:
    FakePieces(const FakeModel* model, int64_t count)
        : model_(model), count_(static_cast<int>(count)) {}
    int count() const override { return count_; }
    int64_t rows(int) const override { return 1; }  // whatever was asked for
    void Run(int index) override {
      ++model_->pieces_run;
      if (model_->no_memory_in == "a piece" && index == 1) throw std::bad_alloc();
      std::this_thread::sleep_for(model_->time_per_row * rows(index));
    }
    Status Join(std::unique_ptr<engine::Outputs>* outputs) override {
      if (model_->no_memory_in == "Join") throw std::bad_alloc();
      *outputs = std::make_unique<NoOutputs>();
      return OkStatus();
    }

   private:
    const FakeModel* const model_;
    const int count_;
  };

  std::string signatures_;
  mutable std::atomic<std::thread::id> ran_on_;
};

struct Finished {
  Status status;
  PredictStats stats;
};

class FakeRequest final : public scheduling::Job, public PredictMember {
 public:
  FakeRequest(std::shared_ptr<const Servable> servable, int64_t rows, std::string input = "x")
      : servable_(std::move(servable)), input_(std::move(input)) {
    request_.mutable_model_spec()->signature_name = "late";
    request_.AddColumn(input_)->dims = {rows};
  }

  Clock::time_point deadline() const override { return deadline_at; }
  bool cancelled() const override { return hung_up; }
  void Describe(scheduling::JobProfile* profile) override {
    DescribePredict(request_, *servable_, profile);
  }
  void Run(Clock::duration, std::vector<scheduling::Taken>*) override {}
  void Drop(scheduling::DropReason) override {}

  scheduling::Job* job() override { return this; }
  Status Read() override { return readable ? OkStatus() : InvalidArgument("unreadable"); }
  const DecodedRequest& request() const override { return request_; }
  const Servable& servable() const override { return *servable_; }
  void Finish(const Status& status, const engine::Outputs*, const PredictStats& stats) override {
    finished_.set_value({status, stats});
  }

  Finished WaitUntilFinished() { return finished_.get_future().get(); }

  bool readable = true;
  std::atomic<bool> hung_up{false};
  Clock::time_point deadline_at = Clock::time_point::max();

 private:
  const std::shared_ptr<const Servable> servable_;
  const std::string input_;
  DecodedRequest request_;
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

  void Learn(std::chrono::microseconds per_row) {
    for (const int64_t rows : {10, 1000}) {
      servable_->request_class("late")->cost().Observe(rows, per_row * rows);
    }
  }

  FakeModel* model_ = nullptr;
  std::shared_ptr<const Servable> servable_;
  static scheduling::WorkerPool::Options WithLongRequestsNice() {
    scheduling::WorkerPool::Options options;
    options.num_workers = 2;
    options.long_request_nice = 10;
    return options;
  }

  scheduling::WorkerPool workers_{{/*num_workers=*/2}};
};

TEST_F(PredictRunTest, ARequestAloneIsARunOfOne) {
  FakeRequest request(servable_, 20);
  RunPredict(&request, milliseconds(3), {}, &workers_);
  const Finished finished = request.WaitUntilFinished();
  EXPECT_TRUE(finished.status.ok());
  EXPECT_EQ(finished.stats.waited, milliseconds(3));
  EXPECT_EQ(finished.stats.run_requests, 1);
  EXPECT_EQ(finished.stats.run_rows, 20);
  EXPECT_FALSE(finished.stats.joined);
}

TEST_F(PredictRunTest, OfRequestsTogetherEachHasItsOwnStatusAndTheFirstTellsOfTheRun) {
  FakeRequest first(servable_, 20);
  FakeRequest bad(servable_, 20, "bad");
  FakeRequest unreadable(servable_, 20);
  unreadable.readable = false;
  FakeRequest last(servable_, 30);
  RunPredict(&first, milliseconds(3),
             {{&bad, milliseconds(2)}, {&unreadable, milliseconds(2)}, {&last, milliseconds(1)}},
             &workers_);
  const Finished of_first = first.WaitUntilFinished();
  EXPECT_TRUE(of_first.status.ok());
  EXPECT_EQ(of_first.stats.run_requests, 3);
  EXPECT_EQ(of_first.stats.run_rows, 70);
  EXPECT_EQ(bad.WaitUntilFinished().status.message, "a bad input");
  EXPECT_EQ(unreadable.WaitUntilFinished().status.message, "unreadable");
  const Finished of_last = last.WaitUntilFinished();
  EXPECT_TRUE(of_last.status.ok());
  EXPECT_TRUE(of_last.stats.joined);
  EXPECT_EQ(of_last.stats.waited, milliseconds(1));
  EXPECT_EQ(of_last.stats.run_requests, 0);
}

TEST_F(PredictRunTest, ARequestThatFindsNoMemoryFailsAlone) {
  FakeRequest huge(servable_, 20, "huge");
  RunPredict(&huge, milliseconds(0), {}, &workers_);
  const Status alone = huge.WaitUntilFinished().status;
  EXPECT_EQ(alone.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(alone.message, HasSubstr("no memory"));

  FakeRequest first(servable_, 20), again(servable_, 20, "huge"), last(servable_, 20);
  RunPredict(&first, milliseconds(0), {{&again, milliseconds(0)}, {&last, milliseconds(0)}},
             &workers_);
  EXPECT_TRUE(first.WaitUntilFinished().status.ok());
  EXPECT_EQ(again.WaitUntilFinished().status.code, StatusCode::kResourceExhausted);
  EXPECT_TRUE(last.WaitUntilFinished().status.ok());
}

TEST_F(PredictRunTest, ARequestInPiecesIsAnsweredOnceWhereverItFindsNoMemory) {
  for (const char* const where : {"a piece", "Join", "Divide"}) {
    Batching batching;
    batching.limits.max_piece_rows = 4;
    Serve(batching);
    model_->no_memory_in = where;
    FakeRequest request(servable_, 10);
    RunPredict(&request, milliseconds(0), {}, &workers_);
    const Finished finished = request.WaitUntilFinished();
    if (where == std::string("Divide")) {  // as a whole there was enough
      EXPECT_TRUE(finished.status.ok());
      EXPECT_EQ(finished.stats.run_rows, 10);
    } else {
      EXPECT_EQ(finished.status.code, StatusCode::kResourceExhausted) << where;
      EXPECT_EQ(finished.stats.piece_waits.size(), 3) << where;
    }
  }
}

TEST_F(PredictRunTest, ARunOfWhatIsLeftAloneIsNoRunTogether) {
  FakeRequest unreadable(servable_, 20);
  unreadable.readable = false;
  FakeRequest other(servable_, 20);
  RunPredict(&unreadable, milliseconds(0), {{&other, milliseconds(1)}}, &workers_);
  EXPECT_FALSE(unreadable.WaitUntilFinished().status.ok());
  EXPECT_FALSE(other.WaitUntilFinished().stats.joined);
}

TEST_F(PredictRunTest, MoreRowsThanABatchMayHaveAreRefused) {
  Batching batching;
  batching.limits.max_request_rows = 10;
  Serve(batching);
  FakeRequest request(servable_, 11);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  const Status status = request.WaitUntilFinished().status;
  EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message, HasSubstr("Task size 11 is larger than maximum input batch size 10"));
}

TEST_F(PredictRunTest, ALargeRequestRunsInPiecesForIdleWorkers) {
  Learn(std::chrono::microseconds(10));
  while (workers_.idle_workers() < 2) std::this_thread::yield();
  FakeRequest request(servable_, 1000);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  const Finished finished = request.WaitUntilFinished();
  EXPECT_TRUE(finished.status.ok());
  EXPECT_TRUE(finished.stats.long_lane);
  EXPECT_EQ(finished.stats.piece_waits.size(), 3);  // two idle workers, and the one that has it
  EXPECT_EQ(model_->pieces_run, 3);
  EXPECT_EQ(finished.stats.run_requests, 0);
}

TEST_F(PredictRunTest, WithSplittingOnAPieceHasNoMoreRowsThanARunMay) {
  Batching batching;
  batching.limits.max_piece_rows = 4;
  Serve(batching);
  FakeRequest request(servable_, 10);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  EXPECT_EQ(request.WaitUntilFinished().stats.piece_waits.size(), 3);
}

TEST_F(PredictRunTest, OnceItsClientHungUpWhatIsLeftOfARequestIsDropped) {
  Learn(std::chrono::microseconds(10));
  while (workers_.idle_workers() < 2) std::this_thread::yield();
  FakeRequest request(servable_, 1000);
  request.hung_up = true;
  RunPredict(&request, milliseconds(0), {}, &workers_);
  EXPECT_EQ(request.WaitUntilFinished().status.code, StatusCode::kCancelled);
  EXPECT_EQ(model_->pieces_run, 0);
  EXPECT_EQ(workers_.dropped(scheduling::DropReason::kCancelled), 1);
}

TEST_F(PredictRunTest, AShortRequestRunsWithThoseThatCameUntilItWasReadAndALongOneDoesNot) {
  model_->divisible = false;
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers{{/*num_workers=*/1}};
  std::promise<void> started, release;
  workers.Submit(new scheduling::BlockingJob(&started, release.get_future().share()));
  started.get_future().wait();
  FakeRequest waiting(servable_, 20), large(servable_, 500), small(servable_, 20);
  workers.Submit(&waiting);
  ASSERT_EQ(workers.queued(), 1);
  RunPredict(&large, milliseconds(0), {}, &workers);
  EXPECT_FALSE(large.WaitUntilFinished().stats.joined);
  EXPECT_EQ(workers.queued(), 1);
  RunPredict(&small, milliseconds(0), {}, &workers);
  EXPECT_EQ(small.WaitUntilFinished().stats.run_rows, 40);
  EXPECT_TRUE(waiting.WaitUntilFinished().stats.joined);
  EXPECT_EQ(workers.queued(), 0);
  release.set_value();
}

TEST_F(PredictRunTest, ALongRequestThatIsNotCutGivesWayAsAWhole) {
  model_->divisible = false;
  model_->time_per_row = std::chrono::microseconds(10);
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithLongRequestsNice());
  FakeRequest first(servable_, 1000), small(servable_, 20), then(servable_, 1000);
  RunPredict(&first, milliseconds(0), {}, &workers);
  EXPECT_EQ(model_->WhereItRan(), "here");  // no short request has come
  RunPredict(&small, milliseconds(0), {}, &workers);
  EXPECT_EQ(model_->WhereItRan(), "here");
  RunPredict(&then, milliseconds(3), {}, &workers);
  const Finished finished = then.WaitUntilFinished();
  EXPECT_EQ(model_->WhereItRan(), "elsewhere");
  EXPECT_TRUE(finished.status.ok());
  EXPECT_GE(finished.stats.waited, milliseconds(3));
  EXPECT_EQ(finished.stats.run_rows, 1000);
}

TEST_F(PredictRunTest, ALongRequestThatGivesWayIsCutWhereItGivesWay) {
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithLongRequestsNice());
  while (workers.idle_workers() < 2) std::this_thread::yield();
  workers.NoteShortRequest();
  FakeRequest request(servable_, 1000);
  RunPredict(&request, milliseconds(3), {}, &workers);
  const Finished finished = request.WaitUntilFinished();
  EXPECT_EQ(model_->WhereItRan(), "elsewhere");
  EXPECT_TRUE(finished.status.ok());
  EXPECT_TRUE(finished.stats.long_lane);
  EXPECT_EQ(finished.stats.piece_waits.size(), 2);
}

TEST_F(PredictRunTest, ALongRequestThatGivesWayDoesNotRunWithOthers) {
  model_->divisible = false;
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithLongRequestsNice());
  workers.NoteShortRequest();
  FakeRequest small(servable_, 20), large(servable_, 1000), other(servable_, 20);
  RunPredict(&small, milliseconds(0), {{&large, milliseconds(0)}, {&other, milliseconds(0)}},
             &workers);
  EXPECT_EQ(small.WaitUntilFinished().stats.run_rows, 40);
  EXPECT_FALSE(large.WaitUntilFinished().stats.joined);
  EXPECT_TRUE(other.WaitUntilFinished().stats.joined);
}

TEST_F(PredictRunTest, ALongRequestThatGivesWayIsDroppedOnceItsClientHungUp) {
  model_->divisible = false;
  Learn(std::chrono::microseconds(10));
  scheduling::WorkerPool workers(WithLongRequestsNice());
  workers.NoteShortRequest();
  FakeRequest request(servable_, 1000);
  request.hung_up = true;
  RunPredict(&request, milliseconds(0), {}, &workers);
  EXPECT_EQ(request.WaitUntilFinished().status.code, StatusCode::kCancelled);
  EXPECT_EQ(workers.dropped(scheduling::DropReason::kCancelled), 1);
}

TEST_F(PredictRunTest, LearnsWhatRequestsCost) {
  model_->time_per_row = std::chrono::microseconds(100);
  FakeRequest request(servable_, 20);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  request.WaitUntilFinished();
  EXPECT_GE(servable_->request_class("late")->cost().Of(20), milliseconds(2));
}

TEST_F(PredictRunTest, AnEstimateIsCorrectedEvenIfNoRequestRunsAlone) {
  scheduling::CostEstimate& cost = servable_->request_class("late")->cost();
  const auto run_together = [&](int times) {
    for (int i = 0; i < times; ++i) {
      FakeRequest first(servable_, 20), other(servable_, 20);
      RunPredict(&first, milliseconds(0), {{&other, milliseconds(0)}}, &workers_);
      EXPECT_TRUE(other.WaitUntilFinished().stats.joined);
    }
  };
  const auto estimate = [&](Clock::duration wrong) {
    for (int i = 0; i < 200; ++i) cost.Observe(20, wrong);
  };
  model_->time_per_row = std::chrono::microseconds(100);
  run_together(1);  // of which nothing is known
  EXPECT_GE(cost.Of(20), milliseconds(2));
  estimate(std::chrono::microseconds(20));
  run_together(20);
  EXPECT_GE(cost.Of(20), milliseconds(1));
  estimate(std::chrono::seconds(100));
  run_together(20);
  EXPECT_LE(cost.Of(20), std::chrono::seconds(50));
}

TEST_F(PredictRunTest, LearnsWhatPiecesCostFromTheRowsTheyHave) {
  Batching batching;
  batching.limits.max_piece_rows = 400;
  Serve(batching);
  model_->time_per_row = milliseconds(1);
  FakeRequest request(servable_, 1000);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  EXPECT_EQ(request.WaitUntilFinished().stats.piece_waits.size(), 3);
  EXPECT_GE(servable_->request_class("late")->cost().Of(1000), milliseconds(1000));
}

TEST_F(PredictRunTest, WhatARequestCostsFollowsItsSizeIfItSaysOne) {
  model_->size_of_row = 100;
  model_->time_per_row = milliseconds(1);
  FakeRequest request(servable_, 20);
  RunPredict(&request, milliseconds(0), {}, &workers_);
  request.WaitUntilFinished();
  EXPECT_GE(servable_->request_class("late")->cost().Of(2000), milliseconds(20));
  EXPECT_LT(servable_->request_class("late")->cost().Of(20), milliseconds(20));
}

TEST_F(PredictRunTest, RowsOfAGreatSizeAreCutSmaller) {
  Learn(std::chrono::microseconds(1));
  model_->time_per_row = std::chrono::microseconds(1);
  while (workers_.idle_workers() < 2) std::this_thread::yield();
  FakeRequest small(servable_, 200), large(servable_, 200);
  RunPredict(&small, milliseconds(0), {}, &workers_);
  small.WaitUntilFinished();
  EXPECT_EQ(model_->pieces_run, 0);
  while (workers_.idle_workers() < 2) std::this_thread::yield();
  model_->size_of_row = 100;  // 20 ms
  RunPredict(&large, milliseconds(0), {}, &workers_);
  EXPECT_GT(large.WaitUntilFinished().stats.piece_waits.size(), 1);
}

TEST_F(PredictRunTest, WhatInterruptsARequestThatGivesWayIsNotItsCost) {
  model_->divisible = false;
  Learn(std::chrono::microseconds(10));
  const auto before = servable_->request_class("late")->cost().Of(1000);
  model_->time_per_row = milliseconds(1);  // asleep
  scheduling::WorkerPool workers(WithLongRequestsNice());
  workers.NoteShortRequest();
  FakeRequest request(servable_, 1000);
  RunPredict(&request, milliseconds(0), {}, &workers);
  request.WaitUntilFinished();
  EXPECT_LE(servable_->request_class("late")->cost().Of(1000), before);
}

TEST_F(PredictRunTest, ARequestThatIsToBeFilledUpIsNotCutUnlessItHasTo) {
  Batching batching;
  batching.rules.allowed_batch_sizes = {1000};
  Serve(batching);
  Learn(std::chrono::microseconds(10));
  while (workers_.idle_workers() < 2) std::this_thread::yield();
  FakeRequest whole(servable_, 1000);
  RunPredict(&whole, milliseconds(0), {}, &workers_);
  EXPECT_EQ(whole.WaitUntilFinished().stats.run_rows, 1000);
  EXPECT_EQ(model_->pieces_run, 0);
}

TEST_F(PredictRunTest, TheQueueIsToldSignatureRowsAndCost) {
  Learn(std::chrono::microseconds(10));
  const FakeRequest request(servable_, 1000);
  scheduling::JobProfile profile;
  DescribePredict(request.request(), *servable_, &profile);
  EXPECT_EQ(profile.request_class, servable_->request_class("late"));
  EXPECT_EQ(profile.group, 1);
  EXPECT_EQ(profile.rows, 1000);
  EXPECT_NEAR(std::chrono::duration<double>(profile.cost).count(), 0.01, 0.001);
}

TEST_F(PredictRunTest, RowsThatARequestOnlyClaimsAreBounded) {
  Learn(std::chrono::microseconds(10));
  const FakeRequest request(servable_, INT64_MAX);
  scheduling::JobProfile profile;
  DescribePredict(request.request(), *servable_, &profile);
  EXPECT_EQ(profile.rows, scheduling::JobProfile::kMaxRows);
  EXPECT_GT(profile.cost, milliseconds(0));
}

TEST_F(PredictRunTest, WhatWillBeRefusedTakesNoRoomInTheQueue) {
  Batching batching;
  batching.limits.max_request_rows = 10;
  Serve(batching);
  const FakeRequest request(servable_, 11);
  scheduling::JobProfile profile;
  DescribePredict(request.request(), *servable_, &profile);
  EXPECT_EQ(profile.request_class, nullptr);
  EXPECT_EQ(profile.rows, 0);
}

}  // namespace
}  // namespace colcast::inference
