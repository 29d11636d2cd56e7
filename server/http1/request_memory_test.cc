#include "server/http1/request_memory.h"

#include <gtest/gtest.h>

namespace colcast::http {
namespace {

TEST(RequestMemory, AllTogetherStayWithinTheLimit) {
  net::MemoryLimit limit(100);
  RequestMemory one(&limit);
  one.Take(60);
  {
    RequestMemory other(&limit);
    other.Take(40);
    EXPECT_THROW(other.Take(1), OverMemoryLimit);
    EXPECT_EQ(limit.bytes(), 100u);
  }
  EXPECT_EQ(limit.bytes(), 60u);
  one.Return(20);
  one.Take(35);
  EXPECT_EQ(limit.bytes(), 75u);
}

TEST(RequestMemory, OneHostsRequestsLeaveAQuarterToOthers) {
  net::MemoryLimit limit(100);
  const auto host = std::make_shared<net::Budget::Account>();
  RequestMemory one(&limit, host);
  RequestMemory second(&limit, host);
  RequestMemory other(&limit);
  one.Take(40);
  EXPECT_THROW(second.Take(40), OverMemoryLimit);
  second.Take(35);
  other.Take(25);
  EXPECT_EQ(limit.bytes(), 100u);
}

TEST(RequestMemory, ARefusalSaysWhetherTryingAgainMayHelp) {
  net::MemoryLimit limit(100);
  RequestMemory one(&limit);
  RequestMemory other(&limit);
  one.Take(60);
  bool final = true;
  EXPECT_THROW(other.Take(60), OverMemoryLimit);
  EXPECT_EQ(other.Refusal(&final).code, StatusCode::kResourceExhausted);
  EXPECT_FALSE(final);
  EXPECT_THROW(one.Take(60), OverMemoryLimit);
  EXPECT_NE(one.Refusal(&final).message.find("--max_rest_bytes"), std::string::npos);
  EXPECT_TRUE(final);
}

TEST(RequestMemory, WithoutALimitThereIsNone) {
  RequestMemory memory;
  memory.Take(size_t{1} << 60);
  memory.Return(1);
}

}  // namespace
}  // namespace colcast::http
