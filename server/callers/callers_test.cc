#include "server/callers/callers.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::callers {
namespace {

TEST(CallersTest, RequestsOfACallerAreOneClients) {
  EXPECT_EQ(ClientOf("batch"), ClientOf("batch"));
  EXPECT_NE(ClientOf("batch"), ClientOf("feed"));
  EXPECT_NE(ClientOf("batch"), 0);
}

TEST(CallersTest, OnlyShortPrintableNamesCount) {
  for (const std::string& sent :
       {std::string(), std::string(129, 'x'), std::string("caf\xc3\xa9"), std::string("a\nb")}) {
    EXPECT_EQ(ClientOf(sent), 0) << sent;
  }
}

}  // namespace
}  // namespace colcast::callers
