#include "server/engine/op_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace colcast::engine {
namespace {

class InstalledWheelTest : public ::testing::Test {
 protected:
  InstalledWheelTest() : packages_(::testing::TempDir() + "installed_wheel/site-packages") {
    std::filesystem::remove_all(packages_);
  }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((packages_ / path).parent_path());
    std::ofstream(packages_ / path) << text;
  }

  // A wheel "NAME-1.2.0" with one library, NAME/ops/ops.so.
  void Install(const std::string& name, const std::string& requirements) {
    const std::string library = name + "/ops/ops.so", info = name + "-1.2.0.dist-info";
    Write(library, "");
    Write(info + "/RECORD", name + "/__init__.py,sha256=x,1\n" + library + ",sha256=y,2\n");
    Write(info + "/METADATA", "Name: " + name + "\n" + requirements);
  }

  const std::filesystem::path packages_;
};

TEST_F(InstalledWheelTest, IsTheOneWhoseRecordHasTheFile) {
  Install("other", "Requires-Dist: tensorflow==1.0\n");
  Install("forests", "Requires-Dist: numpy\nRequires-Dist: tensorflow==2.19.0\n");
  const InstalledWheel wheel = WheelOf(packages_ / "forests/ops/ops.so");
  EXPECT_EQ(wheel.name, "forests");
  EXPECT_EQ(wheel.version, "1.2.0");
  EXPECT_EQ(wheel.tensorflow, "tensorflow==2.19.0");
}

TEST_F(InstalledWheelTest, RequiresTensorFlowAsItWasWritten) {
  const struct {
    const char* line;
    const char* expected;
  } kCases[] = {
      {"Requires-Dist: tensorflow<2.21,>=2.20; platform_machine != \"arm64\"\n",
       "tensorflow<2.21,>=2.20"},
      {"Requires-Dist: tensorflow ~=2.15.0\n", "tensorflow ~=2.15.0"},
      {"Requires-Dist: tensorflow\n", "tensorflow"},
      {"Requires-Dist: tensorflow-io==0.37\n", ""},
      {"", ""},
  };
  for (const auto& one : kCases) {
    Install("ops", one.line);
    EXPECT_EQ(WheelOf(packages_ / "ops/ops/ops.so").tensorflow, one.expected) << one.line;
  }
}

TEST_F(InstalledWheelTest, OfAFileThatNoneHasIsEmpty) {
  Install("forests", "Requires-Dist: tensorflow==2.19.0\n");
  Write("mine/ops.so", "");
  EXPECT_EQ(WheelOf(packages_ / "mine/ops.so").name, "");
  EXPECT_EQ(WheelOf("/no/such/file.so").name, "");
}

using ::testing::HasSubstr;

absl::Status Missing(const std::string& op) {
  return absl::NotFoundError("Op type not registered '" + op + "' in binary running on host.");
}

TEST(LoadOpLibraryTest, NamesThePathOfWhatIsNoLibrary) {
  const absl::Status status = LoadOpLibrary("/no/such/library.so");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the op library /no/such/library.so"));
}

TEST(ProvideMissingOpTest, AnErrorThatIsNotAboutOpsStaysAsItIs) {
  const absl::Status error = absl::DataLossError("truncated");
  EXPECT_EQ(ProvideMissingOp(error), error);
}

TEST(ProvideMissingOpTest, AnOpThatIsRegisteredByNowIsNoError) {
  EXPECT_TRUE(ProvideMissingOp(Missing("NoOp")).ok());
}

TEST(ProvideMissingOpTest, SaysWhichPackageHasAnOp) {
  const struct {
    const char* op;
    const char* hint;
  } kCases[] = {
      {"Addons>Gelu", "install --no-deps tensorflow-addons"},
      {"IO>FileRead", "install --no-deps tensorflow-io"},
      {"TFRA>Find", "install --no-deps tensorflow-recommenders-addons"},
      {"NobodysOp", "no package is known to have it; name the library that does with --op_library"},
  };
  for (const auto& one : kCases) {
    const absl::Status status = ProvideMissingOp(Missing(one.op));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << one.op;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the op \"" + std::string(one.op) + "\" is not registered: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.hint)) << one.op;
  }
}

TEST(RetryWithMissingOpsTest, TriesAgainOnceAnOpIsThere) {
  int attempts = 0;
  const absl::Status status =
      RetryWithMissingOps([&] { return ++attempts == 1 ? Missing("NoOp") : absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 2);
}

TEST(RetryWithMissingOpsTest, EndsWhereTheSameErrorComesAgainAndAgain) {
  int attempts = 0;
  const absl::Status status = RetryWithMissingOps([&] {
    ++attempts;
    return Missing("NoOp");
  });
  EXPECT_EQ(status, Missing("NoOp"));
  EXPECT_LT(attempts, 10);
}

TEST(RetryWithMissingOpsTest, DoesNotTryAgainWhatNoPackageWouldHelp) {
  int attempts = 0;
  const absl::Status status = RetryWithMissingOps([&] {
    ++attempts;
    return absl::InternalError("broken");
  });
  EXPECT_EQ(status, absl::InternalError("broken"));
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace colcast::engine
