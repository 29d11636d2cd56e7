#include "server/http2/unread_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::http2 {
namespace {

using testing::HasSubstr;

TEST(UnreadAnswersTest, CountsUpToTheBound) {
  UnreadAnswers answers(100);
  EXPECT_TRUE(answers.Add("a", 60).ok());
  EXPECT_TRUE(answers.Add("a", 40).ok());
  const Status refused = answers.Add("a", 1);
  EXPECT_EQ(refused.code, StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message, HasSubstr("clients at a have not read 100 bytes"));
  EXPECT_THAT(refused.message, HasSubstr("at most 100 may wait (--max_unread_response_bytes)"));
}

TEST(UnreadAnswersTest, OneAnswerMayBeOfAnySize) {
  UnreadAnswers answers(100);
  EXPECT_TRUE(answers.Add("a", 1000).ok());
  EXPECT_FALSE(answers.Add("a", 1).ok());
  answers.Remove("a", 1000);
  EXPECT_TRUE(answers.Add("a", 1).ok());
}

TEST(UnreadAnswersTest, EachHostHasItsOwnBound) {
  UnreadAnswers answers(100);
  EXPECT_TRUE(answers.Add("a", 100).ok());
  EXPECT_TRUE(answers.Add("b", 100).ok());
  EXPECT_FALSE(answers.Check("a").ok());
  EXPECT_TRUE(answers.Check("c").ok());
}

TEST(UnreadAnswersTest, ChecksBeforeThereIsAnAnswer) {
  UnreadAnswers answers(100);
  EXPECT_FALSE(answers.MayBeFull());
  EXPECT_TRUE(answers.Add("a", 99).ok());
  EXPECT_TRUE(answers.Check("a").ok());
  EXPECT_TRUE(answers.Add("a", 1).ok());
  EXPECT_TRUE(answers.MayBeFull());
  EXPECT_FALSE(answers.Check("a").ok());
  answers.Remove("a", 1);
  EXPECT_FALSE(answers.MayBeFull());
  EXPECT_TRUE(answers.Check("a").ok());
}

}  // namespace
}  // namespace colcast::http2
