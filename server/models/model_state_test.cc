#include "server/models/model_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/inference/testing.h"

namespace colcast::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Clock::time_point kNow{};
const RetryPolicy kNoRetries{0, std::chrono::seconds(1)};
const RetryPolicy kOneRetry{1, std::chrono::seconds(1)};

std::vector<VersionDirectory> OnDisk(const std::vector<int64_t>& versions) {
  std::vector<VersionDirectory> directories;
  for (const int64_t version : versions) {
    directories.push_back({version, "/m/" + std::to_string(version)});
  }
  return directories;
}

std::vector<int64_t> Numbers(const std::vector<const Version*>& versions) {
  std::vector<int64_t> numbers;
  for (const Version* version : versions) numbers.push_back(version->directory.version);
  return numbers;
}

class ModelStateTest : public testing::Test {
 protected:
  void Load(int64_t version) {
    const std::string path = "/m/" + std::to_string(version);
    state_.StartLoading(path);
    state_.Loaded(path, nullptr);
  }
  bool Fail(int64_t version, const RetryPolicy& retries) {
    const std::string path = "/m/" + std::to_string(version);
    state_.StartLoading(path);
    return state_.LoadFailed(path, Internal("broken"), retries, kNow);
  }
  std::vector<int64_t> ToLoad(Clock::time_point now = kNow) const {
    return Numbers(state_.ToLoad(now));
  }
  std::vector<int64_t> ToUnload() const { return Numbers(state_.ToUnload()); }

  ModelState state_{ModelConfig{"m", "/m", {}, {}, {}}};
};

TEST_F(ModelStateTest, LoadsTheHighestVersionFirst) {
  state_.SetAspiredVersions(OnDisk({1, 2, 3}));
  EXPECT_THAT(ToLoad(), ElementsAre(3, 2, 1));
  EXPECT_THAT(ToUnload(), IsEmpty());
}

TEST_F(ModelStateTest, TheOldVersionStaysUntilTheNewOneIsReady) {
  state_.SetAspiredVersions(OnDisk({1}));
  Load(1);
  state_.SetAspiredVersions(OnDisk({2}));
  EXPECT_THAT(ToLoad(), ElementsAre(2));
  EXPECT_THAT(ToUnload(), IsEmpty());
  Load(2);
  EXPECT_THAT(ToUnload(), ElementsAre(1));
}

TEST_F(ModelStateTest, TheOldVersionStaysIfTheNewOneFails) {
  state_.SetAspiredVersions(OnDisk({1}));
  Load(1);
  state_.SetAspiredVersions(OnDisk({2}));
  EXPECT_FALSE(Fail(2, kNoRetries));
  EXPECT_THAT(ToUnload(), IsEmpty());
  EXPECT_THAT(ToLoad(), IsEmpty());
  EXPECT_TRUE(state_.available());
  EXPECT_FALSE(state_.given_up());
}

TEST_F(ModelStateTest, TheHighestOldVersionStaysUntilANewOneIsReady) {
  state_.SetAspiredVersions(OnDisk({1, 2}));
  Load(1);
  Load(2);
  state_.SetAspiredVersions(OnDisk({3}));
  EXPECT_THAT(ToUnload(), ElementsAre(1));
}

TEST_F(ModelStateTest, AFailedVersionIsRetriedAfterTheInterval) {
  state_.SetAspiredVersions(OnDisk({1}));
  EXPECT_TRUE(Fail(1, kOneRetry));
  EXPECT_THAT(ToLoad(), IsEmpty());
  EXPECT_EQ(state_.NextRetry(), kNow + kOneRetry.interval);
  EXPECT_THAT(ToLoad(kNow + kOneRetry.interval), ElementsAre(1));
  EXPECT_FALSE(state_.given_up());
  EXPECT_FALSE(Fail(1, kOneRetry));
  EXPECT_TRUE(state_.given_up());
  EXPECT_EQ(state_.NextRetry(), std::nullopt);
  EXPECT_THAT(state_.FirstError().message, HasSubstr("broken"));
}

TEST_F(ModelStateTest, AVersionNoLongerAspiredIsNotRetried) {
  state_.SetAspiredVersions(OnDisk({1}));
  EXPECT_TRUE(Fail(1, kOneRetry));
  state_.SetAspiredVersions(OnDisk({2}));
  EXPECT_THAT(ToLoad(kNow + kOneRetry.interval), ElementsAre(2));
  EXPECT_EQ(state_.NextRetry(), std::nullopt);
}

TEST_F(ModelStateTest, AFailedVersionThatReappearsIsTriedAgain) {
  state_.SetAspiredVersions(OnDisk({1}));
  Fail(1, kNoRetries);
  state_.SetAspiredVersions({});
  state_.SetAspiredVersions(OnDisk({1}));
  EXPECT_THAT(ToLoad(), ElementsAre(1));
}

std::vector<VersionDirectory> WithFiles(int64_t version, uint64_t files) {
  std::vector<VersionDirectory> directories = OnDisk({version});
  directories[0].files = files;
  return directories;
}

TEST_F(ModelStateTest, ANewVersionIsLoadedOnceItsFilesStopChanging) {
  state_.SetAspiredVersions(WithFiles(1, 10));
  EXPECT_THAT(ToLoad(), ElementsAre(1));
  Load(1);
  for (const uint64_t files : {20, 21, 22}) {
    state_.SetAspiredVersions(WithFiles(2, files));
    EXPECT_THAT(ToLoad(), IsEmpty());
  }
  state_.SetAspiredVersions(WithFiles(2, 22));
  EXPECT_THAT(ToLoad(), ElementsAre(2));
  EXPECT_THAT(ToUnload(), IsEmpty());
}

TEST_F(ModelStateTest, AFailedVersionIsTriedAgainWhenItsFilesChange) {
  for (const RetryPolicy& retries : {kNoRetries, RetryPolicy()}) {
    state_ = ModelState({"m", "/m", {}, {}, {}});
    state_.SetAspiredVersions(WithFiles(1, 10));
    EXPECT_EQ(Fail(1, retries), retries.max_retries > 0);
    for (const uint64_t files : {10, 11}) {
      state_.SetAspiredVersions(WithFiles(1, files));
      EXPECT_THAT(ToLoad(), IsEmpty()) << files;
    }
    state_.SetAspiredVersions(WithFiles(1, 11));
    EXPECT_THAT(ToLoad(), ElementsAre(1));
  }
}

TEST_F(ModelStateTest, AServingVersionIsOutdatedOnceItsFilesChange) {
  state_.SetAspiredVersions(WithFiles(1, 10));
  Load(1);
  state_.SetAspiredVersions(WithFiles(1, 10));
  EXPECT_FALSE(state_.versions()[0].is_outdated);
  state_.SetAspiredVersions(WithFiles(1, 11));
  EXPECT_FALSE(state_.versions()[0].is_outdated);  // a copy may be in progress
  state_.SetAspiredVersions(WithFiles(1, 11));
  EXPECT_TRUE(state_.versions()[0].is_outdated);
  EXPECT_THAT(ToLoad(), IsEmpty());
}

TEST_F(ModelStateTest, AVersionReplacedDuringAFailingLoadIsTriedAgain) {
  state_.SetAspiredVersions(WithFiles(1, 10));
  state_.StartLoading("/m/1");
  state_.SetAspiredVersions(WithFiles(1, 11));
  EXPECT_FALSE(state_.LoadFailed("/m/1", Internal("broken"), kNoRetries, kNow));
  state_.SetAspiredVersions(WithFiles(1, 11));
  EXPECT_THAT(ToLoad(), ElementsAre(1));
}

TEST_F(ModelStateTest, AVersionAspiredAgainDuringUnloadingIsLoadedAfterwards) {
  state_.SetAspiredVersions(OnDisk({1}));
  Load(1);
  state_.SetAspiredVersions({});
  state_.StartUnloading("/m/1");
  state_.SetAspiredVersions(OnDisk({1}));
  EXPECT_THAT(ToLoad(), IsEmpty());
  EXPECT_FALSE(state_.settled());
  state_.Unloaded("/m/1");
  EXPECT_FALSE(state_.settled());
  EXPECT_THAT(ToLoad(), ElementsAre(1));
}

TEST_F(ModelStateTest, AVersionNoLongerAspiredIsUnloadedOnceItHasLoaded) {
  state_.SetAspiredVersions(OnDisk({1, 2}));
  Load(2);
  state_.StartLoading("/m/1");
  state_.SetAspiredVersions(OnDisk({2}));
  state_.Loaded("/m/1", nullptr);
  EXPECT_THAT(ToUnload(), ElementsAre(1));
}

TEST_F(ModelStateTest, VersionsWithTheSameNumberUnderTwoBasePathsAreDistinct) {
  state_.SetAspiredVersions(OnDisk({1}));
  Load(1);
  state_.SetAspiredVersions({{1, "/elsewhere/1"}});
  EXPECT_THAT(ToLoad(), ElementsAre(1));
  EXPECT_THAT(ToUnload(), IsEmpty());
}

TEST_F(ModelStateTest, TheModelSettlesWhenAVersionServesOrAllWereTried) {
  EXPECT_FALSE(state_.settled());
  state_.SetAspiredVersions({});
  EXPECT_TRUE(state_.settled());
  state_.SetAspiredVersions(OnDisk({1, 2}));
  EXPECT_FALSE(state_.settled());
  Fail(1, kOneRetry);
  EXPECT_FALSE(state_.settled());
  Fail(2, kOneRetry);
  EXPECT_TRUE(state_.settled());
}

TEST_F(ModelStateTest, EndedVersionsAreForgottenEventually) {
  for (int64_t version = 1; version <= 1000; ++version) {
    state_.SetAspiredVersions(OnDisk({version}));
    Load(version);
    if (version > 1) {
      state_.StartUnloading("/m/" + std::to_string(version - 1));
      state_.Unloaded("/m/" + std::to_string(version - 1));
    }
  }
  EXPECT_THAT(state_.versions(), SizeIs(testing::Le(25u)));
  EXPECT_EQ(state_.versions().back().directory.version, 1000);
}

using inference::MakeServable;

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

TEST_F(ReloadWaitersTest, CallersWaitUntilAllModelsHaveSettled) {
  Wait({"a", "b"});
  Serve("a");
  Find("b");
  EXPECT_THAT(Settled(), IsEmpty());
  Serve("b");
  EXPECT_THAT(Settled(), ElementsAre("OK: "));
}

TEST_F(ReloadWaitersTest, TheAnswerListsTheReasonForEachFailure) {
  Wait({"a", "b", "c"});
  Fail("a");
  Serve("b");
  Model("c").SetAspiredVersions({});
  EXPECT_THAT(Settled(), ElementsAre("UNKNOWN: 2 model(s) did not become available: a is broken; "
                                     "model \"c\": no version under /c"));
}

TEST_F(ReloadWaitersTest, AModelRemovedOrMovedByALaterConfigurationIsAFailure) {
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

TEST_F(ReloadWaitersTest, TakeAllAnswersEveryCallerWithTheSameStatus) {
  Wait({"a"});
  Wait({"b"});
  for (const auto& answer : waiters_.TakeAll(Unavailable("bye"))) answer();
  EXPECT_THAT(answers_, ElementsAre("UNAVAILABLE: bye", "UNAVAILABLE: bye"));
  EXPECT_THAT(Settled(), IsEmpty());
}

}  // namespace
}  // namespace colcast::models
