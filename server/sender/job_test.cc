#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "server/sender/sender.h"

namespace colcast::sender {
namespace {

using testing::HasSubstr;

std::string Number(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string Text(const std::vector<std::string>& requests, const std::vector<Job::Call>& calls) {
  std::string text = Number(requests.size());
  for (const std::string& each : requests) text += Number(each.size()) + each;
  text += Number(calls.size());
  return text.append(reinterpret_cast<const char*>(calls.data()), calls.size() * sizeof(Job::Call));
}

Status Read(std::string text, Job* job) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      fmemopen(text.data(), text.size(), "r"), std::fclose);
  return ReadJob(file.get(), job);
}

TEST(JobTest, RequestsAndCallsAreReadInOrder) {
  Job job;
  ASSERT_TRUE(Read(Text({"ann", "", "bo"}, {{0.5, 2}, {0.5, 0}}), &job).ok());
  EXPECT_THAT(job.requests, testing::ElementsAre("ann", "", "bo"));
  ASSERT_EQ(job.calls.size(), 2u);
  EXPECT_EQ(job.calls[0].due, 0.5);
  EXPECT_EQ(job.calls[0].request, 2u);
}

TEST(JobTest, AJobThatEndsAnywhereIsRefused) {
  const std::string whole = Text({"ann", "bo"}, {{0.5, 1}});
  for (size_t size = 1; size < whole.size(); ++size) {
    Job job;
    EXPECT_THAT(Read(whole.substr(0, size), &job).message, HasSubstr("the job ends"));
  }
}

TEST(JobTest, WrongCallsAreNamed) {
  Job job;
  EXPECT_EQ(Read(Text({"ann"}, {{1, 0}, {0.5, 0}}), &job).message,
            "call 1 is due at 0.5 s, the one before at 1");
  job = Job();
  EXPECT_EQ(Read(Text({"ann"}, {{1, 1}}), &job).message, "call 0 sends request 1 of 1");
}

TEST(JobTest, ASizeOverProtobufsLimitIsRefusedBeforeItIsAllocated) {
  Job job;
  EXPECT_THAT(Read(Number(1) + Number(uint64_t{1} << 40), &job).message,
              HasSubstr("size of a request is 1099511627776"));
}

}  // namespace
}  // namespace colcast::sender
