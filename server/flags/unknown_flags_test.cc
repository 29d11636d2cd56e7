#include "server/flags/unknown_flags.h"

#include <absl/flags/flag.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

ABSL_FLAG(std::string, test_model_name, "", "a text");
ABSL_FLAG(bool, test_enable_batching, false, "a switch");
ABSL_FLAG(int32_t, test_port, 0, "a number");

namespace colcast::flags {
namespace {

std::string Message(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "server");
  return CheckFlagNames(static_cast<int>(arguments.size()), arguments.data()).message;
}

TEST(UnknownFlagsTest, KnownFlagsPassInEveryForm) {
  EXPECT_EQ(Message({}), "");
  EXPECT_EQ(Message({"--test_model_name=a", "-test_model_name=a", "--test_port", "-1"}), "");
  EXPECT_EQ(Message({"--test_enable_batching", "--notest_enable_batching", "word"}), "");
  EXPECT_EQ(Message({"--help", "--version", "--flagfile=flags.txt"}), "");
  EXPECT_EQ(Message({"--", "--nothing_of_this_name"}), "");
}

TEST(UnknownFlagsTest, ATypoIsToldWithTheFlagThatIsClosest) {
  EXPECT_EQ(Message({"--test_modle_name=a"}),
            "unknown flag --test_modle_name; did you mean --test_model_name?");
  EXPECT_EQ(Message({"--test_enable_batchin"}),
            "unknown flag --test_enable_batchin; did you mean --test_enable_batching?");
}

TEST(UnknownFlagsTest, NothingIsProposedForANameThatIsCloseToNone) {
  EXPECT_EQ(Message({"--zzzzzzzz"}), "unknown flag --zzzzzzzz; --help lists all");
}

TEST(UnknownFlagsTest, ARemovedFlagIsRefusedWithWhatToDoInstead) {
  EXPECT_EQ(Message({"--quota_config_file=quotas.config"}),
            "--quota_config_file is gone: Envoy limits callers' rates (deploy/envoy/render.py "
            "--caller-rate)");
}

TEST(UnknownFlagsTest, OnlySwitchesHaveANegativeForm) {
  EXPECT_EQ(Message({"--notest_port"}), "unknown flag --notest_port; did you mean --test_port?");
}

TEST(UnknownFlagsTest, AValueThatLooksLikeAFlagIsAValue) {
  EXPECT_EQ(Message({"--test_model_name", "--zzzzzzzz"}), "");
}

}  // namespace
}  // namespace colcast::flags
