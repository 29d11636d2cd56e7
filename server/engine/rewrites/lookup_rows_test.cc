#include "server/engine/rewrites/lookup_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
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

// Values whose sum depends on the order in which they are added.
Tensor Table(int64_t width) {
  Tensor table(tensorflow::DT_FLOAT, {7, width});
  auto flat = table.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    flat(i) = (i % 3 == 0 ? 1e8f : 1.0f) / static_cast<float>(1 + i % 11) * (i % 2 == 0 ? 1 : -1);
  }
  return table;
}

TEST(LookupRowsTest, SumsHaveTheBitsOfTensorFlows) {
  for (const int64_t width : {8, 16, 24, 40}) {
    for (const int64_t list : {0, 1, 2, 15, 16, 19, 50}) {
      const Tensor table = Table(width);
      Tensor ids(tensorflow::DT_INT64, {3, list});
      for (int64_t i = 0; i < ids.NumElements(); ++i) ids.flat<int64_t>()(i) = i * 5 % 7;
      const auto scope = tensorflow::Scope::NewRootScope();
      const tensorflow::Input from(table), at(ids);
      tensorflow::ops::Sum(scope.WithOpName("sum"), tensorflow::ops::GatherV2(scope, from, at, 0),
                           1);
      const Tensor expected = *Fetch(SessionOf(scope).get(), {}, "sum");
      std::vector<float> actual(3 * width);
      const size_t row = width * sizeof(float);
      SumRows(table.flat<float>().data(), width,
              {ids.flat<int64_t>().data(), static_cast<size_t>(ids.NumElements())}, {}, 3,
              {reinterpret_cast<char*>(actual.data()), row});
      EXPECT_EQ(std::memcmp(actual.data(), expected.data(), 3 * row), 0) << width << " " << list;
    }
  }
}

TEST(LookupRowsTest, AMeanLeavesOutWhatHasNoWeight) {
  std::vector<float> table(3 * 8);
  // The rows hold 1, 2 and 3.
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i / 8 + 1);
  const std::vector<int64_t> ids = {0, 1, 2, 2, 2, 1};
  const std::vector<float> weights = {1, 0, 1, 0, 0, 0};
  std::vector<float> output(2 * 8, -1);
  const OutputRows rows = {reinterpret_cast<char*>(output.data()), 8 * sizeof(float)};
  SumRows(table.data(), 8, ids, weights, 2, rows);
  DivideRows(8, weights, 2, rows);
  EXPECT_THAT(std::vector<float>(output.begin(), output.begin() + 8), Each(2));
  EXPECT_THAT(std::vector<float>(output.begin() + 8, output.end()), Each(0));
}

}  // namespace
}  // namespace colcast::engine
