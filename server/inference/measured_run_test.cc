#include "server/inference/measured_run.h"

#include <gtest/gtest.h>

#include "server/inference/testing.h"

namespace colcast::inference {
namespace {

// Records the observer of its runs.
class FakeModel final : public ModelWithoutGraph {
 public:
  void ObserveRuns(engine::RunObserver* observer) const override {
    ++times_set;
    observer_ = observer;
  }
  engine::RunObserver* observer() const { return observer_; }

  mutable int times_set = 0;

 private:
  mutable engine::RunObserver* observer_ = nullptr;
};

struct Counter final : engine::RunObserver {
  void OnStage(const engine::StageRun& run) override { rows += run.rows; }
  int64_t rows = 0;
};

TEST(ObservedRunTest, TellsEveryTracedRequestOfTheRunWhileItLasts) {
  const FakeModel model;
  Counter first, second;
  {
    ObservedRun run(model);
    run.Add(&first);
    run.Add(nullptr);
    run.Add(&second);
    model.observer()->OnStage({"user", {}, {}, 3, 0});
  }
  EXPECT_EQ(model.observer(), nullptr);
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(second.rows, 3);
}

TEST(ObservedRunTest, TheModelIsLeftAloneWhereNothingIsTraced) {
  const FakeModel model;
  { ObservedRun(model).Add(nullptr); }
  EXPECT_EQ(model.times_set, 0);
}

}  // namespace
}  // namespace colcast::inference
