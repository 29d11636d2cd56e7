#include "server/engine/op_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace colcast::engine {
namespace {

using ::testing::HasSubstr;

absl::Status Missing(const std::string& op) {
  return absl::NotFoundError("Op type not registered '" + op + "' in binary running on host.");
}

TEST(LoadOpLibraryTest, NamesThePathOfAFileThatIsNoLibrary) {
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

TEST(RetryWithMissingOpsTest, DoesNotTryAgainIfNoPackageWouldHelp) {
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
