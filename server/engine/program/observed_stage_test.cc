#include "server/engine/program/observed_stage.h"

#include <gtest/gtest.h>

#include <vector>

namespace colcast::engine {
namespace {

class Recorder final : public RunObserver {
 public:
  void OnStage(const StageRun& run) override { runs.push_back(run); }
  std::vector<StageRun> runs;
};

TEST(ObservedStageTest, TheThreadsObserverIsToldOnceTheStageHasRun) {
  Recorder recorder;
  { const ObservedStage unobserved("user", 1, 1); }
  thread_observer = &recorder;
  {
    const ObservedStage stage("item", 5, 3);
    EXPECT_TRUE(recorder.runs.empty());
  }
  thread_observer = nullptr;
  ASSERT_EQ(recorder.runs.size(), 1);
  EXPECT_EQ(recorder.runs[0].stage, "item");
  EXPECT_EQ(recorder.runs[0].rows, 5);
  EXPECT_EQ(recorder.runs[0].hits, 3);
  EXPECT_LE(recorder.runs[0].start, recorder.runs[0].end);
}

}  // namespace
}  // namespace colcast::engine
