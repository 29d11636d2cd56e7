#include "server/flags/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace colcast::flags {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Mode { kExact, kLate, kOff };

std::string Set(const Table& table, const std::string& value) {
  return table.flags().back().set(value).message;
}

TEST(TableTest, NumbersMustBeInTheirRange) {
  Table table;
  double share = 0.5;
  table.Add("share", &share, "a share", {0, 1});
  EXPECT_EQ(Set(table, "0.25"), "");
  EXPECT_EQ(share, 0.25);
  for (const char* low : {"-0.1", "nan"}) EXPECT_EQ(Set(table, low), "expected at least 0");
  for (const char* high : {"1.5", "inf"}) EXPECT_EQ(Set(table, high), "expected at most 1");
  for (const char* word : {"", "x", "1x"}) EXPECT_EQ(Set(table, word), "expected a number");
  EXPECT_EQ(share, 0.25);
  table.Add("any", &share, "any number", {0});
  EXPECT_EQ(Set(table, "inf"), "expected a finite number");
}

TEST(TableTest, WholeNumbersMustFitTheirType) {
  Table table;
  int small = 0;
  int64_t large = 0;
  size_t positive = 0;
  table.Add("small", &small, "");
  EXPECT_EQ(Set(table, "2147483648"), "expected a whole number");
  EXPECT_EQ(Set(table, "1.5"), "expected a whole number");
  table.Add("large", &large, "");
  EXPECT_EQ(Set(table, "9223372036854775807"), "");
  EXPECT_EQ(large, std::numeric_limits<int64_t>::max());
  table.Add("positive", &positive, "", {1});
  EXPECT_EQ(Set(table, "-1"), "expected a whole number");
  EXPECT_EQ(Set(table, "0"), "expected at least 1");
}

TEST(TableTest, TimesAreGivenInTheirUnit) {
  Table table;
  std::chrono::milliseconds drain{1500};
  table.AddTime<std::chrono::seconds>("drain_seconds", &drain, "", {0, 60});
  EXPECT_EQ(table.flags().back().default_value, "1.5");
  EXPECT_EQ(Set(table, "0.25"), "");
  EXPECT_EQ(drain, std::chrono::milliseconds(250));
  EXPECT_EQ(Set(table, "61"), "expected at most 60");
  table.AddTime<std::chrono::seconds>("poll_wait_seconds", &drain, "", {0});
  EXPECT_EQ(Set(table, "9223372036854775807"), "");
  EXPECT_EQ(drain, std::chrono::hours(24 * 365 * 100)) << "a time that can be added to now";
}

TEST(TableTest, AChoiceAcceptsOnlyItsWords) {
  Table table;
  Mode mode = Mode::kLate;
  table.AddChoice<Mode>("mode", &mode, "",
                        {{"exact", Mode::kExact}, {"late", Mode::kLate}, {"off", Mode::kOff}});
  EXPECT_EQ(table.flags().back().default_value, "late");
  EXPECT_EQ(Set(table, "off"), "");
  EXPECT_EQ(mode, Mode::kOff);
  EXPECT_EQ(Set(table, "fast"), "expected one of exact, late, off");
}

TEST(TableTest, AListIsSeparatedByCommas) {
  Table table;
  std::vector<std::string> list = {"serve"};
  table.Add("list", &list, "");
  EXPECT_EQ(table.flags().back().default_value, "serve");
  EXPECT_EQ(Set(table, "a,b c"), "");
  EXPECT_THAT(list, ElementsAre("a", "b c"));
  EXPECT_EQ(Set(table, ""), "");
  EXPECT_TRUE(list.empty());
}

TEST(TableTest, HelpHasEveryFlagOfASubjectWithItsDefault) {
  Table table;
  int64_t bytes = 60'000'000;
  std::string text;
  table.Add("hidden", &text, "without a subject");
  table.Begin("texts");
  table.Add("b_text", &text, "a text");
  table.Begin("numbers");
  table.Add("a_bytes", &bytes, "a number");
  EXPECT_EQ(HelpText(table, {"numbers", "texts"}),
            "numbers:\n"
            "  --a_bytes=60000000\n"
            "      a number\n"
            "\n"
            "texts:\n"
            "  --b_text=\"\"\n"
            "      a text\n");
}

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    table_.Add("model_name", &name_, "a text");
    table_.Add("enable_batching", &batching_, "a switch");
    table_.Add("port", &port_, "a number", {0, 65535});
  }

  std::string Parse(const std::vector<std::string>& arguments) {
    return ParseCommandLine(arguments, table_, {{"old_flag", "use --model_name"}}).message;
  }

  std::string WriteFile(const std::string& text) {
    const std::string path = testing::TempDir() + "command_line_test.flags";
    std::ofstream(path) << text;
    return path;
  }

  std::string name_ = "default";
  bool batching_ = false;
  int port_ = 8500;
  Table table_;
};

TEST_F(CommandLineTest, EveryFormOfAFlagIsAccepted) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(Parse({"--model_name=a=b", "-port", "1", "--enable_batching"}), "");
  EXPECT_EQ(name_, "a=b");
  EXPECT_EQ(port_, 1);
  EXPECT_TRUE(batching_);
  EXPECT_EQ(Parse({"--model_name", "--x", "--noenable_batching", "--port=2", "--"}), "");
  EXPECT_EQ(name_, "--x");
  EXPECT_FALSE(batching_);
  EXPECT_EQ(Parse({"-enable_batching=yes", "--model_name="}), "");
  EXPECT_TRUE(batching_);
  EXPECT_EQ(name_, "");
}

TEST_F(CommandLineTest, ErrorsNameTheFlagAndItsInvalidValue) {
  EXPECT_EQ(Parse({"--port=many"}), "--port=many: expected a whole number");
  EXPECT_EQ(Parse({"--port=70000"}), "--port=70000: expected at most 65535");
  EXPECT_EQ(Parse({"--enable_batching=2"}), "--enable_batching=2: expected true or false");
  EXPECT_EQ(Parse({"--port"}), "--port: expected a value");
  EXPECT_EQ(port_, 8500);
}

TEST_F(CommandLineTest, AnUnknownOrRemovedFlagIsRefused) {
  EXPECT_EQ(Parse({"--modle_name=a"}), "unknown flag --modle_name; --help lists all");
  EXPECT_EQ(Parse({"--noport"}), "unknown flag --noport; --help lists all");
  EXPECT_EQ(Parse({"--old_flag=1"}), "the flag --old_flag was removed: use --model_name");
}

TEST_F(CommandLineTest, ArgumentsOtherThanFlagsAreRefused) {
  EXPECT_EQ(Parse({"word"}), "unexpected argument \"word\"");
  EXPECT_EQ(Parse({"-"}), "unexpected argument \"-\"");
  EXPECT_EQ(Parse({"--", "--port=1"}), "unexpected argument \"--port=1\"");
}

TEST_F(CommandLineTest, AFlagFileHasOneFlagPerLine) {
  const std::string path = WriteFile("# ours\n\n  --port=7\n--enable_batching\n--model_name=a b\n");
  EXPECT_EQ(Parse({"--flagfile=" + path, "--model_name=last"}), "");
  EXPECT_EQ(port_, 7);
  EXPECT_TRUE(batching_);
  EXPECT_EQ(name_, "last");
  WriteFile("--port=x\n");
  EXPECT_EQ(Parse({"--flagfile", path}), path + ": --port=x: expected a whole number");
  WriteFile("--flagfile=" + path + "\n");
  EXPECT_NE(Parse({"--flagfile", path}).find("is nested too deep"), std::string::npos);
  EXPECT_THAT(Parse({"--flagfile=/not/there"}), HasSubstr("--flagfile: cannot read /not/there: "));
  EXPECT_THAT(Parse({"--flagfile=/dev/zero"}), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace colcast::flags
