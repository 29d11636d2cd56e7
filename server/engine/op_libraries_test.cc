#include "server/engine/op_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace colcast::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Missing(const std::string& op) {
  return absl::NotFoundError("Op type not registered '" + op + "' in binary running on host.");
}

TEST(LoadOpLibraryTest, TheErrorNamesThePath) {
  const absl::Status status = LoadOpLibrary("/no/such/library.so");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the op library /no/such/library.so"));
}

TEST(WithMissingOpTest, OtherErrorsAndErrorsAboutRegisteredOpsAreUnchanged) {
  for (const absl::Status& error : {absl::DataLossError("truncated"), Missing("NoOp")}) {
    EXPECT_EQ(WithMissingOp(error), error);
  }
}

TEST(WithMissingOpTest, TheErrorNamesThePackageThatHasTheOp) {
  const std::pair<std::string, std::string> kCases[] = {
      {"Addons>Gelu", "install --no-deps tensorflow-addons"},
      {"IO>FileRead", "install --no-deps tensorflow-io"},
      {"TFRA>Find", "install --no-deps tensorflow-recommenders-addons"},
      {"NobodysOp", "no package is known to have it; name the library that does with --op_library"},
  };
  for (const auto& [op, hint] : kCases) {
    const absl::Status status = WithMissingOp(Missing(op));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << op;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("the op \"" + op + "\" is not registered: "), HasSubstr(hint)));
  }
}

}  // namespace
}  // namespace colcast::engine
