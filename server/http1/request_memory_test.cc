#include "server/http1/request_memory.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(SliceBuffer, IsWhatWasAppended) {
  SliceBuffer buffer;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string part(i, static_cast<char>('a' + i % 26));
    buffer.Append(part);
    expected += part;
  }
  EXPECT_EQ(buffer.size(), expected.size());
  EXPECT_EQ(buffer.bytes().ToString(), expected);
}

TEST(SliceBuffer, NumbersDoNotCrossSlices) {
  SliceBuffer buffer;
  for (int64_t i = 0; i < 300'000; ++i) buffer.AppendValue(i);
  EXPECT_GT(buffer.slices().size(), 1u);
  for (const Slice& slice : buffer.slices()) EXPECT_EQ(slice.size % sizeof(int64_t), 0u);
}

TEST(SliceBuffer, WhatItTakesIsCountedUntilItIsCleared) {
  net::MemoryLimit limit(10 << 20);
  RequestMemory memory(&limit);
  SliceBuffer buffer(&memory);
  buffer.Append(std::string(5 << 20, 'x'));
  EXPECT_GE(limit.bytes(), size_t{5} << 20);
  EXPECT_LE(limit.bytes(), size_t{6} << 20);
  SliceBuffer moved = std::move(buffer);
  EXPECT_GE(limit.bytes(), size_t{5} << 20);
  moved.Clear();
  EXPECT_EQ(limit.bytes(), 0u);
}

TEST(SliceBuffer, ThrowsWhereThereIsNoRoom) {
  net::MemoryLimit limit(1000);
  RequestMemory memory(&limit);
  SliceBuffer buffer(&memory);
  EXPECT_THROW(buffer.Append(std::string(2000, 'x')), OverMemoryLimit);
  EXPECT_LE(limit.bytes(), 1000u);
}

}  // namespace
}  // namespace colcast::http
