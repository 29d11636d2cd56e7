#include "server/engine/rewrites/rounded_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace colcast::engine {
namespace {

using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kBehind = 7;  // a value after the output, which must not change

struct Case {
  tensorflow::DataType type;
  Instructions instructions;
  int64_t width;
};

class RoundedTableTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (instructions() > WidestInstructions()) GTEST_SKIP() << "this CPU lacks the instructions";
  }

  static tensorflow::DataType type() { return GetParam().type; }
  static bool is_int8() { return type() == tensorflow::DT_INT8; }
  static Instructions instructions() { return GetParam().instructions; }
  static int64_t width() { return GetParam().width; }

  static Floats Random(int64_t rows) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    Floats values(rows * width());
    for (float& value : values) value = normal(random);
    return values;
  }

  static RoundedTable TableOf(const Floats& values) {
    const auto rows = static_cast<int64_t>(values.size()) / width();
    return RoundedTable(type(), values.data(), rows, width(), instructions());
  }

  // Writes `rows` outputs with a gap of two floats between them.
  static Floats Written(const RoundedTable& table, const std::vector<int64_t>& ids, int64_t rows,
                        bool is_sum) {
    const int64_t stride = width() + 2;
    Floats out(rows * stride, kBehind);
    const OutputRows output{reinterpret_cast<char*>(out.data()), stride * sizeof(float)};
    is_sum ? table.Sum(ids, rows, output) : table.Gather(ids, output);
    Floats written;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const begin = out.data() + row * stride;
      written.insert(written.end(), begin, begin + width());
      EXPECT_EQ(begin[width()], kBehind);
      EXPECT_EQ(begin[width() + 1], kBehind);
    }
    return written;
  }
  static Floats Gathered(const RoundedTable& table, const std::vector<int64_t>& ids) {
    return Written(table, ids, static_cast<int64_t>(ids.size()), false);
  }

  static float LargestOf(const Floats& values, int64_t row) {
    float largest = 0;
    for (int64_t i = 0; i < width(); ++i) {
      largest = std::max(largest, std::abs(values[row * width() + i]));
    }
    return largest;
  }
};

TEST_P(RoundedTableTest, ARowWithOneValueFarAboveTheOthersKeepsItsBits) {
  if (width() == 1) GTEST_SKIP() << "there are no others";
  Floats values(2 * width(), 1);
  values[width()] = 1000;
  const Floats row(values.begin() + width(), values.end());
  EXPECT_EQ(Gathered(TableOf(values), {1}), row);
}

TEST_P(RoundedTableTest, ARowIsCloseToItsFloats) {
  const Floats values = Random(50);
  const RoundedTable table = TableOf(values);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 50; ++i) ids.push_back(49 - i);
  const Floats rows = Gathered(table, ids);
  for (int64_t row = 0; row < 50; ++row) {
    for (int64_t i = 0; i < width(); ++i) {
      const int64_t id = ids[row];
      EXPECT_NEAR(rows[row * width() + i], values[id * width() + i], LargestOf(values, id) / 251);
    }
  }
}

TEST_P(RoundedTableTest, ASumIsThatOfItsRows) {
  const RoundedTable table = TableOf(Random(50));
  for (const int64_t count : {0, 1, 2, 5, 40}) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 3 * count; ++i) ids.push_back(i * 7 % 50);
    const Floats sums = Written(table, ids, 3, true), rows = Gathered(table, ids);
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t i = 0; i < width(); ++i) {
        double expected = 0;
        for (int64_t k = 0; k < count; ++k) expected += rows[(row * count + k) * width() + i];
        EXPECT_NEAR(sums[row * width() + i], expected, 1e-4) << count << " ids";
      }
    }
  }
}

TEST_P(RoundedTableTest, ARowsBitsDoNotDependOnItsNeighbours) {
  const RoundedTable table = TableOf(Random(50));
  const Floats together = Gathered(table, {4, 9, 4, 30});
  const Floats alone = Gathered(table, {30});
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + 3 * width()));
}

TEST_P(RoundedTableTest, RowsWithNumbersThatAreNoneKeepTheirBitsInInt8) {
  if (!is_int8()) GTEST_SKIP();
  Floats values = Random(4);
  values[0 * width()] = kNan;
  values[2 * width() - 1] = -INFINITY;
  const RoundedTable table = TableOf(values);
  const Floats rows = Gathered(table, {1, 0, 2});
  EXPECT_EQ(rows[width() - 1], -INFINITY);
  EXPECT_TRUE(std::isnan(rows[width()]));
  for (int64_t i = 1; i < width(); ++i) EXPECT_EQ(rows[width() + i], values[i]);
  const Floats sums = Written(table, {2, 0, 3, 1, 2, 3}, 3, true);
  EXPECT_TRUE(std::isnan(sums[0]));
  EXPECT_EQ(sums[2 * width() - 1], -INFINITY);
  EXPECT_TRUE(std::isfinite(sums[2 * width()]));
}

TEST_P(RoundedTableTest, ARowOfZerosIsExact) {
  const RoundedTable table = TableOf(Floats(3 * width(), 0.0f));
  EXPECT_EQ(Gathered(table, {2, 0}), Floats(2 * width(), 0.0f));
}

TEST_P(RoundedTableTest, ARowOfOneValueStaysOne) {
  for (const float value : {3.0f, -1e-3f, 1e38f, is_int8() ? -3.4e38f : -3.38e38f}) {
    const Floats row = Gathered(TableOf(Floats(width(), value)), {0});
    for (const float one : row) {
      EXPECT_EQ(one, row[0]);
      EXPECT_NEAR(one / value, 1, 1.0 / 251);
    }
  }
}

TEST_P(RoundedTableTest, RowsTooSmallForAScaleKeepTheirBitsInInt8) {
  if (!is_int8()) GTEST_SKIP();
  const Floats tiny(width(), 1e-40f);
  EXPECT_EQ(Gathered(TableOf(tiny), {0}), tiny);
}

TEST_P(RoundedTableTest, AnIdThatIsNoRowsRefersToFloatsBesideTheTable) {
  const Floats values = Random(52);
  const RoundedTable table(type(), values.data(), 50, width(), instructions());
  EXPECT_EQ(Gathered(table, {51}), Floats(values.end() - width(), values.end()));
  const Floats sum = Written(table, {50, 3, 51}, 1, true), third = Gathered(table, {3});
  for (int64_t i = 0; i < width(); ++i) {
    EXPECT_EQ(sum[i], values[50 * width() + i] + third[i] + values[51 * width() + i]);
  }
}

TEST_P(RoundedTableTest, RowsRoundedBeforeAreReadAlike) {
  Floats values = Random(50);
  values[0] = kNan;
  auto rounded = RoundedRows::Of(type(), values.data(), 50, width(), instructions());
  const RoundedTable table(values.data(), 50, width(), rounded, instructions());
  EXPECT_TRUE(table.IsComplete());
  EXPECT_EQ(Gathered(table, {1, 49}), Gathered(TableOf(values), {1, 49}));
  if (!is_int8()) return;
  rounded.kept.clear();
  const RoundedTable incomplete(values.data(), 50, width(), rounded, instructions());
  EXPECT_FALSE(incomplete.IsComplete());
  EXPECT_EQ(Gathered(incomplete, {0}).size(), static_cast<size_t>(width()));
}

TEST_P(RoundedTableTest, Bfloat16IsRoundedToNearestEvenAndWidenedBitForBit) {
  if (is_int8()) GTEST_SKIP();
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {
      {0x3f807fff, 0x3f800000}, {0x3f808000, 0x3f800000}, {0x3f808001, 0x3f810000},  // ties to even
      {0x3f817fff, 0x3f810000}, {0x3f818000, 0x3f820000}, {0xbf818000, 0xbf820000},
      {0x3fffffff, 0x40000000},                            // carries into the exponent
      {0x7f7f7fff, 0x7f7f0000}, {0x7f7f8000, 0x7f800000},  // the largest that is finite
      {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},  // infinity
      {0x7f800001, 0x7fc00000}, {0x7fffffff, 0x7fc00000}, {0xffc12345, 0xffc00000},  // NaN
      {0x80000000, 0x80000000}, {0x00008000, 0x00000000}, {0x00008001, 0x00010000},  // denormals
      {0x00018000, 0x00020000}, {0x80ff8000, 0x81000000}};
  Floats values;
  std::vector<int64_t> ids;
  for (const auto& [before, after] : expected) {
    ids.push_back(static_cast<int64_t>(ids.size()));
    values.resize(values.size() + width());
    for (int64_t i = 1; i <= width(); ++i) std::memcpy(&*(values.end() - i), &before, 4);
  }
  const Floats rows = Gathered(TableOf(values), ids);
  for (size_t i = 0; i < rows.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &rows[i], 4);
    EXPECT_EQ(bits, expected[i / width()].second) << std::hex << expected[i / width()].first;
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto instructions : {Instructions::kAny, Instructions::kAvx2, Instructions::kAvx512}) {
    for (const int64_t width : {1, 3, 8, 13, 16, 32, 64, 100, 129}) {
      cases.push_back({tensorflow::DT_INT8, instructions, width});
      cases.push_back({tensorflow::DT_BFLOAT16, instructions, width});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Widths, RoundedTableTest, ::testing::ValuesIn(Cases()));

}  // namespace
}  // namespace colcast::engine
