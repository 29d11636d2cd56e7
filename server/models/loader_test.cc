#include "server/models/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <utility>

#include "server/inference/testing.h"

namespace colcast::models {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// Loads models without graph from any directory, or fails with `error`.
class EmptyEngine final : public engine::Engine {
 public:
  Status LoadOpLibrary(const std::string&) const override { return OkStatus(); }
  Status Load(const std::string& directory, const std::vector<std::string>& tags,
              std::unique_ptr<engine::Model>* model) const override {
    loaded.push_back(directory + ' ' + tags.at(0));
    if (throws) throw std::runtime_error("stale file handle");
    if (error.ok()) *model = std::make_unique<inference::ModelWithoutGraph>();
    return error;
  }

  Status error;
  bool throws = false;
  mutable std::vector<std::string> loaded;
};

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::ofstream(directory_ / "saved_model.pb") << "a graph without variables";
    options_.memory_margin_fraction = -1;
  }
  ~LoaderTest() override { fs::remove_all(directory_); }

  // Loads version 3 of model "m".
  LoadReport Load(bool check = false) {
    std::promise<LoadReport> done;
    Loader loader(options_, &engine_);
    const Status started =
        loader.Start({"m", {3, directory_.native()}, /*attempt=*/2, /*low_priority=*/false, check},
                     [&](const LoadReport& report, std::shared_ptr<const Servable> servable) {
                       servable_ = std::move(servable);
                       done.set_value(report);
                     });
    EXPECT_TRUE(started.ok()) << started.message;
    return done.get_future().get();
  }

  const fs::path directory_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  Loader::Options options_;
  EmptyEngine engine_;
  std::shared_ptr<const Servable> servable_;
};

TEST_F(LoaderTest, AnExceptionIsAnAttemptThatFailed) {
  engine_.throws = true;
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kInternal);
  EXPECT_THAT(report.status.message, HasSubstr("stale file handle"));
}

TEST_F(LoaderTest, WhatWasLoadedIsHandedOver) {
  const LoadReport report = Load();
  EXPECT_TRUE(report.status.ok()) << report.status.message;
  EXPECT_TRUE(report.loaded);
  EXPECT_EQ(report.model_name, "m");
  EXPECT_EQ(report.version, 3);
  EXPECT_EQ(report.attempt, 2);
  EXPECT_EQ(report.path, directory_.native());
  ASSERT_NE(servable_, nullptr);
  EXPECT_EQ(servable_->name(), "m");
  EXPECT_EQ(servable_->version(), 3);
  EXPECT_THAT(engine_.loaded, ElementsAre(directory_.native() + " serve"));
}

TEST_F(LoaderTest, TheListenerIsToldBeforeTheVersionServes) {
  std::vector<std::string> events;
  options_.on_load = [&](const LoadReport& report) {
    events.push_back(report.status.ok() ? "loaded" : "failed");
    EXPECT_EQ(servable_, nullptr);
  };
  Load();
  engine_.error = Internal("broken");
  servable_ = nullptr;
  Load();
  EXPECT_THAT(events, ElementsAre("loaded", "failed"));
}

TEST_F(LoaderTest, AnErrorNamesModelVersionAndDirectory) {
  engine_.error = InvalidArgument("no such tags");
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(report.status.message, "model \"m\" version 3 cannot be loaded from " +
                                       directory_.native() + ": no such tags");
  EXPECT_FALSE(report.loaded);
  EXPECT_EQ(servable_, nullptr);
}

TEST_F(LoaderTest, AVersionThatDoesNotFitIsNotTried) {
  options_.memory_margin_fraction = 1e15;
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(engine_.loaded, ElementsAre());
}

TEST_F(LoaderTest, ACheckComesFirstWhereItIsAskedFor) {
  options_.check = [](const std::string& directory) { return Internal("crashed on ", directory); };
  EXPECT_TRUE(Load(/*check=*/false).status.ok());
  engine_.loaded.clear();
  EXPECT_THAT(Load(/*check=*/true).status.message, HasSubstr("crashed on " + directory_.native()));
  EXPECT_THAT(engine_.loaded, ElementsAre());
}

TEST_F(LoaderTest, TryLoadsOnThisThreadAndServesNobody) {
  Loader loader(options_, &engine_);
  EXPECT_TRUE(loader.Try(directory_).ok());
  engine_.error = Internal("broken");
  EXPECT_EQ(loader.Try(directory_).message, "broken");
}

}  // namespace
}  // namespace colcast::models
