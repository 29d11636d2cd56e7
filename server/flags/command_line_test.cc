#include "server/flags/command_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace colcast::flags {
namespace {

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

TEST_F(CommandLineTest, FlagsAreSetInEveryForm) {
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

TEST_F(CommandLineTest, AValueThatCannotBeIsNamedWithItsFlag) {
  EXPECT_EQ(Parse({"--port=many"}), "--port=many: expected a whole number");
  EXPECT_EQ(Parse({"--port=70000"}), "--port=70000: expected at most 65535");
  EXPECT_EQ(Parse({"--enable_batching=2"}), "--enable_batching=2: expected true or false");
  EXPECT_EQ(Parse({"--port"}), "--port: expected a value");
  EXPECT_EQ(port_, 8500);
}

TEST_F(CommandLineTest, ATypoIsToldWithTheFlagThatIsClosest) {
  EXPECT_EQ(Parse({"--modle_name=a"}), "unknown flag --modle_name; did you mean --model_name?");
  EXPECT_EQ(Parse({"--zzzzzzzz"}), "unknown flag --zzzzzzzz; --help lists all");
  EXPECT_EQ(Parse({"--noport"}), "unknown flag --noport; did you mean --port?");
}

TEST_F(CommandLineTest, ARemovedFlagIsRefusedWithWhatToDoInstead) {
  EXPECT_EQ(Parse({"--old_flag=1"}), "the flag --old_flag was removed: use --model_name");
}

TEST_F(CommandLineTest, WhatIsNoFlagIsRefused) {
  EXPECT_EQ(Parse({"word"}), "unexpected argument \"word\"");
  EXPECT_EQ(Parse({"-"}), "unexpected argument \"-\"");
  EXPECT_EQ(Parse({"--", "--port=1"}), "unexpected argument \"--port=1\"");
}

TEST_F(CommandLineTest, AFileHasAFlagPerLine) {
  const std::string path = WriteFile("# ours\n\n  --port=7\n--enable_batching\n--model_name=a b\n");
  EXPECT_EQ(Parse({"--flagfile=" + path, "--model_name=last"}), "");
  EXPECT_EQ(port_, 7);
  EXPECT_TRUE(batching_);
  EXPECT_EQ(name_, "last");
  WriteFile("--port=x\n");
  EXPECT_EQ(Parse({"--flagfile", path}), path + ": --port=x: expected a whole number");
  WriteFile("--flagfile=" + path + "\n");
  EXPECT_NE(Parse({"--flagfile", path}).find("is nested too deep"), std::string::npos);
  EXPECT_EQ(Parse({"--flagfile=/not/there"}), "--flagfile: cannot read /not/there");
}

}  // namespace
}  // namespace colcast::flags
