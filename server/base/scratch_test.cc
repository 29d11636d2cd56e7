#include "server/base/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace colcast {
namespace {

TEST(FreeIfLargeTest, KeepsASmallVectorAndFreesALargeOne) {
  std::vector<int64_t> kept;
  for (const size_t bytes : {kMostKeptBytes, kMostKeptBytes + sizeof(int64_t)}) {
    const size_t size = bytes / sizeof(int64_t);
    {
      const FreeIfLarge free_kept(&kept);
      kept = std::vector<int64_t>(size);
    }
    EXPECT_EQ(kept.capacity(), bytes <= kMostKeptBytes ? size : 0u);
  }
}

}  // namespace
}  // namespace colcast
