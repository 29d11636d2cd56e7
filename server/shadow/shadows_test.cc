#include "server/shadow/shadows.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/inference/testing.h"
#include "server/scheduling/testing.h"

namespace colcast::shadow {
namespace {

using inference::Servable;

class OneScore final : public inference::GivenOutputs {
 public:
  explicit OneScore(float score) : score_(score) {
    Add({"score", DT_FLOAT, dims_, &score_, nullptr});
  }

 private:
  const float score_;
  const std::vector<int64_t> dims_{1};
};

// Answers with its score; a negative one is an error.
class Scorer final : public inference::ModelWithoutGraph {
 public:
  explicit Scorer(float score)
      : ModelWithoutGraph(inference::SerializedGraph(
            "signature_def { key: 'serving_default' value { outputs { key: 'score' } } }")),
        score_(score) {}
  Status Answer(const DecodedRequest&, std::unique_ptr<engine::Outputs>* outputs) const override {
    if (score_ < 0) return Internal("broken");
    *outputs = std::make_unique<OneScore>(score_);
    return OkStatus();
  }

 private:
  const float score_;
};

std::shared_ptr<const Servable> Version(int64_t number, float score) {
  std::shared_ptr<const Servable> servable;
  EXPECT_TRUE(Servable::Create("m", number, std::make_unique<Scorer>(score), &servable).ok());
  return servable;
}

class ShadowRunnerTest : public ::testing::Test {
 protected:
  static ShadowVersion All(const std::string& model) {
    ShadowVersion version;
    version.spec.name = model;
    version.share = 1;
    return version;
  }

  // Reports a live answer with score 1.
  void Answer(const std::string& request = "") {
    if (auto shadow = shadows_.Draw(*live_)) {
      shadows_.Add(std::move(shadow), *live_, Bytes(request), OneScore(1).columns());
    }
  }

  int64_t NotRunBecause(NotRun reason) const {
    const auto all = shadows_.counts().not_run();
    const auto found = all.find("m");
    return found == all.end() ? 0 : found->second[static_cast<int>(reason)];
  }

  VersionCounts WaitForCounts() const {
    while (shadows_.counts().versions().empty()) std::this_thread::yield();
    return shadows_.counts().versions().front();
  }

  std::shared_ptr<const Servable> live_ = Version(1, 1);
  std::shared_ptr<const Servable> shadow_;  // null if the version is not loaded
  Shadows shadows_{{{All("m")}, /*max_queued_requests=*/2, /*max_queued_bytes=*/10},
                   [this](const ModelSpec&, std::shared_ptr<const Servable>* servable) {
                     *servable = shadow_;
                     return shadow_ == nullptr ? NotFound("not there") : OkStatus();
                   }};
  scheduling::WorkerPool workers_{{}};
};

TEST_F(ShadowRunnerTest, RunsAndCompares) {
  shadow_ = Version(2, 1.5);
  const ShadowRunner runner(&shadows_, &workers_);
  Answer();
  const VersionCounts counts = WaitForCounts();
  EXPECT_EQ(counts.versions, (Versions{"m", 1, 2}));
  EXPECT_EQ(counts.compared, 1);
  ASSERT_EQ(counts.outputs.size(), 1u);
  EXPECT_EQ(counts.outputs[0].largest, 0.5);
}

TEST_F(ShadowRunnerTest, AFailureIsCountedWithItsMessage) {
  shadow_ = Version(2, -1);
  const ShadowRunner runner(&shadows_, &workers_);
  Answer();
  const VersionCounts counts = WaitForCounts();
  EXPECT_EQ(counts.failed, 1);
  EXPECT_EQ(counts.compared, 0);
  EXPECT_EQ(counts.last_error, "broken");
}

TEST_F(ShadowRunnerTest, WhatIsNotServedIsCountedAndTheSameVersionIsNot) {
  Answer();
  EXPECT_EQ(NotRunBecause(NotRun::kNotServed), 1);
  shadow_ = live_;
  EXPECT_EQ(shadows_.Draw(*live_), nullptr);
  EXPECT_EQ(NotRunBecause(NotRun::kNotServed), 1);
}

TEST_F(ShadowRunnerTest, OtherModelsAreNotDrawn) {
  shadow_ = Version(2, 1);
  Shadows others({{All("another")}}, nullptr);
  EXPECT_EQ(others.Draw(*live_), nullptr);
}

TEST_F(ShadowRunnerTest, AFullQueueDrops) {
  shadow_ = Version(2, 1);
  for (int i = 0; i < 3; ++i) Answer();
  EXPECT_EQ(NotRunBecause(NotRun::kQueueFull), 1);
}

TEST_F(ShadowRunnerTest, TooManyBytesAreDropped) {
  shadow_ = Version(2, 1);
  Answer(std::string(11, 'x'));
  EXPECT_EQ(NotRunBecause(NotRun::kQueueFull), 1);
}

TEST_F(ShadowRunnerTest, ABusyServerDrops) {
  shadow_ = Version(2, 1);
  std::promise<void> started, released;
  workers_.Submit(new scheduling::BlockingJob(&started, released.get_future().share()));
  started.get_future().wait();
  const ShadowRunner runner(&shadows_, &workers_);
  Answer();
  while (NotRunBecause(NotRun::kBusy) == 0) std::this_thread::yield();
  EXPECT_TRUE(shadows_.counts().versions().empty());
  released.set_value();
}

TEST_F(ShadowRunnerTest, AnswersWithoutValuesAreNotCompared) {
  shadow_ = Version(2, 1);
  shadows_.Add(shadow_, *live_, Bytes(), {});
  for (int i = 0; i < 2; ++i) Answer();
  EXPECT_EQ(NotRunBecause(NotRun::kQueueFull), 0);
}

}  // namespace
}  // namespace colcast::shadow
