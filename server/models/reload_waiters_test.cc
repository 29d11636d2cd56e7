#include "server/models/reload_waiters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/inference/testing.h"

namespace colcast::models {
namespace {

using inference::MakeServable;
using testing::ElementsAre;
using testing::IsEmpty;

class ReloadWaitersTest : public testing::Test {
 protected:
  void Wait(const std::set<std::string>& models) {
    std::map<std::string, std::string> base_paths;
    for (const std::string& name : models) base_paths.emplace(name, "/" + name);
    waiters_.Add(std::move(base_paths), [this](const Status& status) {
      answers_.push_back(std::string(StatusName(status.code)) + ": " + status.message);
    });
  }
  // Answers the callers whose models have settled, and returns the answers.
  std::vector<std::string> Settled() {
    answers_.clear();
    for (const auto& answer : waiters_.TakeSettled(models_)) answer();
    return answers_;
  }

  ModelState& Model(const std::string& name) {
    return models_.try_emplace(name, ModelConfig{name, "/" + name, {}, {}, {}}).first->second;
  }
  void Find(const std::string& name) { Model(name).SetAspiredVersions({{1, Path(name)}}); }
  void Serve(const std::string& name) {
    Find(name);
    Model(name).StartLoading(Path(name));
    Model(name).Loaded(Path(name), MakeServable(1));
  }
  void Fail(const std::string& name) {
    Find(name);
    Model(name).StartLoading(Path(name));
    Model(name).LoadFailed(Path(name), Internal(name, " is broken"), RetryPolicy{0, {}}, {});
  }
  static std::string Path(const std::string& name) { return "/" + name + "/1"; }

  std::map<std::string, ModelState> models_;
  std::vector<std::string> answers_;
  ReloadWaiters waiters_;
};

TEST_F(ReloadWaitersTest, WhoWaitsForNothingIsAnsweredAtOnce) {
  Wait({});
  EXPECT_THAT(Settled(), ElementsAre("OK: "));
  EXPECT_THAT(Settled(), IsEmpty());
}

TEST_F(ReloadWaitersTest, AllModelsMustHaveSettled) {
  Wait({"a", "b"});
  Serve("a");
  Find("b");
  EXPECT_THAT(Settled(), IsEmpty());
  Serve("b");
  EXPECT_THAT(Settled(), ElementsAre("OK: "));
}

TEST_F(ReloadWaitersTest, OthersModelsDoNotCount) {
  Wait({"a"});
  Serve("a");
  Find("b");
  EXPECT_THAT(Settled(), ElementsAre("OK: "));
}

TEST_F(ReloadWaitersTest, TheReasonsOfAllThatFailedAreGiven) {
  Wait({"a", "b", "c"});
  Fail("a");
  Serve("b");
  Model("c").SetAspiredVersions({});
  EXPECT_THAT(Settled(), ElementsAre("UNKNOWN: 2 model(s) did not become available: a is broken; "
                                     "model \"c\": no version under /c"));
}

TEST_F(ReloadWaitersTest, AModelThatALaterConfigurationRemovedOrMovedIsAFailure) {
  Wait({"a"});
  Find("a");
  EXPECT_THAT(Settled(), IsEmpty());
  Model("a").Leave();
  const char kReplaced[] = "replaced by a later configuration before it served";
  EXPECT_THAT(Settled(), ElementsAre(testing::HasSubstr(kReplaced)));
  Wait({"b"});
  Serve("b");
  Model("b").SetConfig(ModelConfig{"b", "/elsewhere", {}, {}, {}});
  EXPECT_THAT(Settled(), ElementsAre(testing::HasSubstr(kReplaced)));
}

TEST_F(ReloadWaitersTest, AtTheEndAllAreToldTheSame) {
  Wait({"a"});
  Wait({"b"});
  for (const auto& answer : waiters_.TakeAll(Unavailable("bye"))) answer();
  EXPECT_THAT(answers_, ElementsAre("UNAVAILABLE: bye", "UNAVAILABLE: bye"));
  EXPECT_THAT(Settled(), IsEmpty());
}

}  // namespace
}  // namespace colcast::models
