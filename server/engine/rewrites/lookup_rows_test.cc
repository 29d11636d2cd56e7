#include "server/engine/rewrites/lookup_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace colcast::engine {
namespace {

using ::testing::Each;

constexpr size_t kGap = 8;  // bytes between output rows, which must stay 0

std::vector<char> Bytes(size_t size) {
  std::vector<char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), char{1});
  return bytes;
}

TEST(LookupRowsTest, RowsOfEachWidthAreGatheredAndNothingBesideThem) {
  for (const size_t width : {4, 12, 16, 32, 64, 100, 128, 256}) {
    const std::vector<char> table = Bytes(5 * width);
    const std::vector<int64_t> ids = {4, 0, 4, 2, 1, 3, 0, 0, 1, 2, 3, 4, 4, 1};
    std::vector<char> output(ids.size() * (width + kGap), 0);
    GatherRows(table.data(), width, ids, {output.data(), width + kGap});
    for (size_t i = 0; i < ids.size(); ++i) {
      const char* const row = output.data() + i * (width + kGap);
      EXPECT_EQ(std::memcmp(row, table.data() + ids[i] * width, width), 0) << width << " " << i;
      EXPECT_THAT(std::vector<char>(row + width, row + width + kGap), Each(0)) << width << " " << i;
    }
  }
}

TEST(LookupRowsTest, RowsAreCopiedFromTheFirstOnAndRepeated) {
  for (const size_t width : {4, 6}) {
    const std::vector<char> from = Bytes(4 * width);
    std::vector<char> output(3 * width, 0);
    CopyRows(from.data(), width, 2, 2, {output.data() + width, width});
    EXPECT_EQ(std::memcmp(output.data() + width, from.data() + 2 * width, 2 * width), 0);
    RepeatRow(output.data() + width, width, 3, {output.data(), width});
    RepeatRow(output.data(), width, 3, {output.data(), width});  // in place
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(std::memcmp(output.data() + i * width, from.data() + 2 * width, width), 0) << i;
    }
  }
}

}  // namespace
}  // namespace colcast::engine
