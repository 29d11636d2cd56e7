#include "server/models/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "server/base/fake_root_testing.h"
#include "server/inference/testing.h"

namespace colcast::models {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// A model with a mapped table. Each call of tables() returns the next of `looks`.
class ModelWithTables final : public inference::ModelWithoutGraph {
 public:
  explicit ModelWithTables(std::vector<engine::TableMemory>* looks) : looks_(looks) {}
  engine::TableMemory tables() const override {
    const engine::TableMemory now = looks_->front();
    if (looks_->size() > 1) looks_->erase(looks_->begin());
    return now;
  }

 private:
  std::vector<engine::TableMemory>* const looks_;
};

engine::TableMemory Checked(int64_t checked, int64_t mapped, std::string damage = "") {
  engine::TableMemory memory;
  memory.mapped = mapped;
  memory.checked = checked;
  memory.damage = std::move(damage);
  return memory;
}

// Loads models without a graph from any directory, or fails with `error`.
class EmptyEngine final : public engine::Engine {
 public:
  Status LoadOpLibrary(const std::string&) const override { return OkStatus(); }
  Status Load(const std::string& directory, const std::vector<std::string>& tags,
              std::unique_ptr<engine::Model>* model) const override {
    loaded.push_back(directory + ' ' + tags.at(0));
    if (throws) throw std::runtime_error("stale file handle");
    if (error.ok()) *model = std::make_unique<ModelWithTables>(&looks);
    return error;
  }

  mutable std::vector<engine::TableMemory> looks = {{}};
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
  LoadReport Load(bool check = false, bool another_serves = false) {
    std::promise<LoadReport> done;
    Loader loader(options_, &engine_);
    const Status started =
        loader.Start({"m",
                      {3, directory_.native()},
                      /*low_priority=*/false,
                      check,
                      another_serves},
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

TEST_F(LoaderTest, AnExceptionFailsTheLoad) {
  engine_.throws = true;
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kInternal);
  EXPECT_THAT(report.status.message, HasSubstr("stale file handle"));
}

TEST_F(LoaderTest, ALoadedVersionIsReported) {
  const LoadReport report = Load();
  EXPECT_TRUE(report.status.ok()) << report.status.message;
  ASSERT_NE(servable_, nullptr);
  EXPECT_EQ(servable_->name(), "m");
  EXPECT_EQ(servable_->version(), 3);
  EXPECT_THAT(engine_.loaded, ElementsAre(directory_.native() + " serve"));
}

TEST_F(LoaderTest, AnErrorNamesModelVersionAndDirectory) {
  engine_.error = InvalidArgument("no such tags");
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(report.status.message, "model \"m\" version 3 cannot be loaded from " +
                                       directory_.native() + ": no such tags");
  EXPECT_EQ(servable_, nullptr);
}

TEST_F(LoaderTest, AVersionTooLargeForMemoryIsNotLoaded) {
  options_.memory_margin_fraction = 1e15;
  const LoadReport report = Load();
  EXPECT_EQ(report.status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(engine_.loaded, ElementsAre());
}

TEST_F(LoaderTest, TheErrorNamesAFifoAmongTheFiles) {
  const fs::path fifo = directory_ / "variables" / "variables.index";
  fs::create_directory(fifo.parent_path());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(Load().status.message,
              HasSubstr(fifo.native() + " is neither a regular file nor a folder"));
  EXPECT_THAT(engine_.loaded, ElementsAre());
}

TEST_F(LoaderTest, AFailedCheckPreventsTheLoad) {
  options_.check = [](const std::string& directory) { return Internal("crashed on ", directory); };
  EXPECT_TRUE(Load(/*check=*/false).status.ok());
  engine_.loaded.clear();
  EXPECT_THAT(Load(/*check=*/true).status.message, HasSubstr("crashed on " + directory_.native()));
  EXPECT_THAT(engine_.loaded, ElementsAre());
}

TEST_F(LoaderTest, TablesAreReadBeforeAVersionReplacesAnother) {
  const std::vector<engine::TableMemory> looks = {Checked(0, 9), Checked(4, 9), Checked(9, 9)};
  engine_.looks = looks;
  EXPECT_TRUE(Load(/*check=*/false, /*another_serves=*/true).status.ok());
  EXPECT_EQ(engine_.looks.size(), 1);
  engine_.looks = looks;
  EXPECT_TRUE(Load().status.ok());
  EXPECT_EQ(engine_.looks.size(), looks.size());
}

TEST_F(LoaderTest, AVersionWithDamagedTablesDoesNotReplaceAnother) {
  engine_.looks = {Checked(0, 9), Checked(4, 9, "table \"a\" differs")};
  const LoadReport report = Load(/*check=*/false, /*another_serves=*/true);
  EXPECT_EQ(report.status.code, StatusCode::kDataLoss);
  EXPECT_THAT(report.status.message, HasSubstr("table \"a\" differs"));
  EXPECT_EQ(servable_, nullptr);
}

using inference::MakeServable;

TEST(UnloaderTest, DestroysVersionsOnItsOwnThreadAfterTheLastRelease) {
  std::atomic<bool> destroyed{false};
  std::thread::id where;
  Unloader unloader(1);
  std::shared_ptr<const Servable> shared = unloader.Share(MakeServable(1), [&] {
    where = std::this_thread::get_id();
    destroyed = true;
  });
  std::shared_ptr<const Servable> user = shared;
  shared.reset();
  EXPECT_EQ(user->version(), 1);
  EXPECT_FALSE(destroyed);
  user.reset();
  while (!destroyed) std::this_thread::yield();
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(UnloaderTest, UsersMayOutliveTheUnloader) {
  std::shared_ptr<const Servable> user;
  {
    Unloader unloader(2);
    user = unloader.Share(MakeServable(1), [] { FAIL() << "there is no thread to call this"; });
  }
  EXPECT_EQ(user->version(), 1);
}

using testing::AllOf;

constexpr int64_t kMiB = 1 << 20;

class SizeOnDiskTest : public FakeRootTest {};

TEST_F(SizeOnDiskTest, AddsUpFilesAtAnyDepth) {
  Write("model/saved_model.pb", "12345");
  Write("model/variables/variables.data", "123");
  fs::create_directory_symlink(root_ / "model", root_ / "link");
  ModelSize size;
  for (const char* name : {"model", "link"}) {
    ASSERT_TRUE(SizeOnDisk(root_ / name, &size).ok());
    EXPECT_EQ(size.bytes, 8);
    EXPECT_EQ(size.graph_bytes, 5);
  }
  ASSERT_TRUE(SizeOnDisk(root_ / "none", &size).ok());
  EXPECT_EQ(size.bytes, 0);
}

TEST(MemoryBudgetTest, RefusesModelsThatDoNotFitAndNamesTheSizes) {
  MemoryBudget budget(0.5, [] { return 300 * kMiB; });
  MemoryBudget::Reservation reservation;
  const Status status = budget.Reserve({201 * kMiB}, &reservation);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message, AllOf(HasSubstr("201 MiB on disk"), HasSubstr("301 MiB"),
                                    HasSubstr("300 MiB are available")));
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &reservation).ok());
}

TEST(MemoryBudgetTest, LoadsInProgressUseTheBudget) {
  MemoryBudget budget(0, [] { return 300 * kMiB; });
  {
    MemoryBudget::Reservation first;
    ASSERT_TRUE(budget.Reserve({200 * kMiB}, &first).ok());
    MemoryBudget::Reservation second;
    EXPECT_FALSE(budget.Reserve({200 * kMiB}, &second).ok());
  }
  MemoryBudget::Reservation third;
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &third).ok());
}

TEST(MemoryBudgetTest, ANegativeMarginDisablesTheCheck) {
  MemoryBudget budget(-1, [] { return int64_t{0}; });
  MemoryBudget::Reservation reservation;
  EXPECT_TRUE(budget.Reserve({200 * kMiB}, &reservation).ok());
}

}  // namespace
}  // namespace colcast::models
