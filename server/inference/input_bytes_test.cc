#include "server/inference/input_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace colcast::inference {
namespace {

class InputBytesTest : public testing::Test {
 protected:
  int64_t With(DataType dtype, std::vector<int64_t> dims, int64_t rows) {
    DecodedRequest request;
    Column* const column = request.AddColumn("x");
    column->dtype = dtype;
    column->dims = std::move(dims);
    return InputBytes(request, rows) - InputBytes(DecodedRequest(), rows);
  }
};

TEST_F(InputBytesTest, AColumnOfOneRowCountsForEachRow) {
  EXPECT_EQ(With(DT_INT64, {20}, 20), 160);
  EXPECT_EQ(With(DT_FLOAT, {1, 50}, 20), 4000);
  EXPECT_EQ(With(DT_FLOAT, {}, 20), 4);
  EXPECT_EQ(With(DT_STRING, {1}, 20), 480);
}

TEST_F(InputBytesTest, RowsAloneTakeSome) { EXPECT_GT(InputBytes(DecodedRequest(), 1000), 1000); }

TEST_F(InputBytesTest, WhateverARequestClaimsIsANumber) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kPetabyte = 1'000'000'000'000'000;
  EXPECT_EQ(InputBytes(DecodedRequest(), kMax), kPetabyte);
  EXPECT_EQ(With(DT_FLOAT, {kMax, kMax, 8}, 2), kPetabyte - InputBytes(DecodedRequest(), 2));
  EXPECT_EQ(With(DT_FLOAT, {-1, 3}, 2), 0);
}

TEST_F(InputBytesTest, TogetherAllListsAreAsLongAsTheLongest) {
  DecodedRequest one, other;
  const auto add = [](DecodedRequest* request, const char* name, std::vector<int64_t> dims) {
    Column* const column = request->AddColumn(name);
    column->dtype = DT_FLOAT;
    column->dims = std::move(dims);
  };
  add(&one, "id", {20});
  add(&one, "history", {1, 1000});
  add(&other, "history", {1, 10});
  add(&other, "id", {30});
  EXPECT_EQ(PaddingBytes({{&one, 20}, {&other, 30}}), 30 * (1000 - 10) * 4);
  EXPECT_EQ(PaddingBytes({{&one, 20}, {&one, 20}}), 0);
}

}  // namespace
}  // namespace colcast::inference
