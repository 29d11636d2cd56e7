#include "server/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

namespace colcast {
namespace {

using ::testing::HasSubstr;

TEST(ThreadTest, AnExceptionIsAnErrorThatNamesTheWork) {
  const Status status =
      RunCaught("poll", []() -> Status { throw std::runtime_error("Input/output error"); });
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_EQ(status.message, "poll: Input/output error");
  EXPECT_EQ(RunCaught("load", []() -> Status { throw std::bad_alloc(); }).code,
            StatusCode::kResourceExhausted);
  EXPECT_EQ(RunCaught("load", [] { return NotFound("none"); }).message, "none");
}

TEST(ThreadTest, ABodyThatThrowsIsLoggedAndRunsAgain) {
  int runs = 0;
  std::thread thread;
  ::testing::internal::CaptureStderr();
  const Status status = StartThread(
      "poll",
      [&runs] {
        if (++runs == 1) throw std::runtime_error("stale file handle");
      },
      &thread);
  ASSERT_TRUE(status.ok()) << status.message;
  thread.join();
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("poll: stale file handle"));
}

// In a process of its own: the limit of address space leaves room for stacks of threads that ended.
TEST(ThreadTest, AThreadThatCannotBeMadeIsAnError) {
  const auto start_without_room = [] {
    const rlimit none{1, 1};
    setrlimit(RLIMIT_AS, &none);
    Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) {
      std::thread thread;
      status = StartThread(
          "loads", [] { pause(); }, &thread);
      if (status.ok()) thread.detach();
    }
    std::_Exit(status.code == StatusCode::kResourceExhausted ? 0 : 1);
  };
  EXPECT_EXIT(start_without_room(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace colcast
