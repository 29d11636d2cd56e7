#include "server/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "server/base/figures.h"

namespace colcast {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { SetLogFormat(LogFormat::kText); }
};

TEST_F(LogTest, WritesPlainTextByDefault) {
  ::testing::internal::CaptureStderr();
  LogWarning("model \"m\": \"why\"", {"m", 3});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("....-..-.. ..:..:..[.]...Z WARNING model \"m\": \"why\"\n"));
}

TEST_F(LogTest, ControlCharactersAreEscaped) {
  ::testing::internal::CaptureStderr();
  LogInfo("model \"a\n2026-01-01 ERROR b\x1b[2J\"");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              EndsWith("INFO model \"a\\x0a2026-01-01 ERROR b\\x1b[2J\"\n"));
}

TEST_F(LogTest, WritesOneJsonObjectPerLine) {
  SetLogFormat(LogFormat::kJson);
  ::testing::internal::CaptureStderr();
  LogInfo("up", {"m", 3});
  LogError("down");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("[{]\"time\":\"....-..-..T..:..:..[.]...Z\",\"severity\":\"INFO\","
                           "\"message\":\"up\",\"model\":\"m\",\"version\":3[}]\n"
                           "[{]\"time\":\"....-..-..T..:..:..[.]...Z\",\"severity\":\"ERROR\","
                           "\"message\":\"down\"[}]\n"));
}

// Each test runs in a separate process, because the writer lives as long as its process.
class LogWriterTest : public ::testing::Test {
 protected:
  // {reader, writer}
  static std::array<int, 2> Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    return ends;
  }
};

TEST_F(LogWriterTest, LinesBeyondTheQueuesLimitAreCounted) {
  const auto log_much = [] {
    dup2(Pipe()[1], STDERR_FILENO);  // nobody reads it
    StartLogWriter();
    for (int i = 0; i < 3000; ++i) LogInfo(std::string(1000, 'x'));
    std::_Exit(figures.lost_log_lines > 0 ? 0 : 1);
  };
  EXPECT_EXIT(log_much(), ::testing::ExitedWithCode(0), "");
}

TEST_F(LogWriterTest, LinesThatCannotBeWrittenAreCounted) {
  const auto lose_three = [] {
    std::signal(SIGPIPE, SIG_IGN);
    const auto [reader, writer] = Pipe();
    close(reader);
    dup2(writer, STDERR_FILENO);
    StartLogWriter();
    for (int i = 0; i < 3; ++i) LogInfo("lost");
    FlushLog();
    std::_Exit(figures.lost_log_lines == 3 ? 0 : 1);
  };
  EXPECT_EXIT(lose_three(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace colcast
