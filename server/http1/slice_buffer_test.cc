#include "server/http1/slice_buffer.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::http {
namespace {

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
