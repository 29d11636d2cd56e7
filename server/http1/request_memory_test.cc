#include "server/http1/request_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::http {
namespace {

TEST(RequestMemory, AllRequestsShareTheLimit) {
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

TEST(RequestMemory, NothingIsCountedWithoutALimit) {
  RequestMemory memory;
  memory.Take(size_t{1} << 60);
  memory.Return(1);
}

TEST(CountedBytes, HoldTheAppendedBytes) {
  CountedBytes bytes;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string part(i, static_cast<char>('a' + i % 26));
    bytes.Append(part);
    expected += part;
  }
  for (int64_t i = 0; i < 1000; ++i) {
    bytes.AppendValue(i);
    expected.append(reinterpret_cast<const char*>(&i), sizeof(i));
  }
  EXPECT_EQ(bytes.size(), expected.size());
  EXPECT_EQ(bytes.bytes().view(), expected);
  EXPECT_EQ(bytes.Text(), expected);
  EXPECT_EQ(bytes.Text().data()[expected.size()], '\0');
}

TEST(CountedBytes, AreCountedUntilTheyAreCleared) {
  net::MemoryLimit limit(10 << 20);
  RequestMemory memory(&limit);
  CountedBytes bytes(&memory);
  for (int i = 0; i < 5; ++i) bytes.Append(std::string(1 << 20, 'x'));
  EXPECT_GE(limit.bytes(), size_t{5} << 20);
  EXPECT_LE(limit.bytes(), size_t{6} << 20);
  CountedBytes moved = std::move(bytes);
  EXPECT_GE(limit.bytes(), size_t{5} << 20);
  moved.Clear();
  EXPECT_EQ(limit.bytes(), 0u);
  moved.Append("again");
  EXPECT_EQ(moved.bytes().view(), "again");
}

TEST(CountedBytes, AreUnchangedIfAppendingThrows) {
  net::MemoryLimit limit(1000);
  RequestMemory memory(&limit);
  CountedBytes bytes(&memory);
  bytes.Append("abc");
  EXPECT_THROW(bytes.Append(std::string(2000, 'x')), OverMemoryLimit);
  EXPECT_EQ(bytes.bytes().view(), "abc");
  EXPECT_LE(limit.bytes(), 1000u);
}

}  // namespace
}  // namespace colcast::http
