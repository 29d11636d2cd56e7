#include "server/engine/rewrites/lookup_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "server/engine/rewrites/lookup_testing.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"

namespace colcast::engine {
namespace {

using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kBehind = 7;  // a value after the output, which must not change

struct Case {
  Instructions instructions;
  int64_t width;
};

class Int8TableTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (instructions() > WidestInstructions()) GTEST_SKIP() << "this CPU lacks the instructions";
  }

  static Instructions instructions() { return GetParam().instructions; }
  static int64_t width() { return GetParam().width; }

  static Floats Random(int64_t rows) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    Floats values(rows * width());
    for (float& value : values) value = normal(random);
    return values;
  }

  static Int8Table TableOf(const Floats& values) {
    const auto rows = static_cast<int64_t>(values.size()) / width();
    return Int8Table(values.data(), rows, width(), RoundedToInt8(values.data(), rows, width()),
                     instructions());
  }

  // Writes `rows` outputs with a gap of two floats between them.
  static Floats Written(const Int8Table& table, const std::vector<int64_t>& ids, int64_t rows,
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
  static Floats Gathered(const Int8Table& table, const std::vector<int64_t>& ids) {
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

TEST_P(Int8TableTest, ARowIsCloseToItsFloats) {
  const Floats values = Random(50);
  const Int8Table table = TableOf(values);
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

TEST_P(Int8TableTest, ASumEqualsTheSumOfItsRows) {
  const Int8Table table = TableOf(Random(50));
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

TEST_P(Int8TableTest, ARowsBitsDoNotDependOnItsNeighbours) {
  const Int8Table table = TableOf(Random(50));
  const Floats together = Gathered(table, {4, 9, 4, 30});
  const Floats alone = Gathered(table, {30});
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + 3 * width()));
}

TEST_P(Int8TableTest, RowsWithoutAScaleKeepTheirFloats) {
  Floats values = Random(4);
  values[0 * width()] = kNan;
  values[2 * width() - 1] = -INFINITY;
  const Int8Table table = TableOf(values);
  const Floats rows = Gathered(table, {1, 0, 2});
  EXPECT_EQ(rows[width() - 1], -INFINITY);
  EXPECT_TRUE(std::isnan(rows[width()]));
  for (int64_t i = 1; i < width(); ++i) EXPECT_EQ(rows[width() + i], values[i]);
  const Floats sums = Written(table, {2, 0, 3, 1, 2, 3}, 3, true);
  EXPECT_TRUE(std::isnan(sums[0]));
  EXPECT_EQ(sums[2 * width() - 1], -INFINITY);
  EXPECT_TRUE(std::isfinite(sums[2 * width()]));
}

TEST_P(Int8TableTest, ARowOfZerosIsExact) {
  const Int8Table table = TableOf(Floats(3 * width(), 0.0f));
  EXPECT_EQ(Gathered(table, {2, 0}), Floats(2 * width(), 0.0f));
}

TEST_P(Int8TableTest, AnIdOutOfRangeRefersToFloatsBesideTheTable) {
  const Floats values = Random(52);
  const Int8Table table(values.data(), 50, width(), RoundedToInt8(values.data(), 50, width()),
                        instructions());
  EXPECT_EQ(Gathered(table, {51}), Floats(values.end() - width(), values.end()));
  const Floats sum = Written(table, {50, 3, 51}, 1, true), third = Gathered(table, {3});
  for (int64_t i = 0; i < width(); ++i) {
    EXPECT_EQ(sum[i], values[50 * width() + i] + third[i] + values[51 * width() + i]);
  }
}

TEST_P(Int8TableTest, ATableThatLacksKeptFloatsIsIncomplete) {
  Floats values = Random(50);
  values[0] = kNan;
  Int8Rows rounded = RoundedToInt8(values.data(), 50, width());
  EXPECT_TRUE(Int8Table(values.data(), 50, width(), rounded).IsComplete());
  rounded.kept.clear();
  const Int8Table incomplete(values.data(), 50, width(), rounded, instructions());
  EXPECT_FALSE(incomplete.IsComplete());
  EXPECT_EQ(Gathered(incomplete, {0}).size(), static_cast<size_t>(width()));
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto instructions : {Instructions::kAny, Instructions::kAvx2, Instructions::kAvx512}) {
    for (const int64_t width : {1, 3, 8, 13, 16, 32, 64, 100, 129}) {
      cases.push_back({instructions, width});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Widths, Int8TableTest, ::testing::ValuesIn(Cases()));

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Int8LookupsTest = LookupGraphTest;

TEST_F(Int8LookupsTest, ResultsAreCloseToTensorFlows) {
  const auto original = Start(Original()), rewritten = Start(InInt8());
  for (const int64_t list : {0, 1, 3, 40}) {
    for (const auto& ids : std::vector<std::vector<int64_t>>{{}, {0}, {5, 19'999, 5, 77}}) {
      const Feeds feeds = Requests(ids, list);
      const auto expected = Fetch(original.get(), feeds), actual = Fetch(rewritten.get(), feeds);
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE(actual.ok()) << actual.status();
      ExpectClose(*actual, *expected, std::max<float>(1, list) / 251);
    }
  }
}

TEST_F(Int8LookupsTest, AThreadKeepsNoMemoryOfALongList) {
  const auto session = Start(InInt8());
  ExpectNothingKept([&](bool is_large) {  // ids of 1.6 MB
    ASSERT_TRUE(Fetch(session.get(), Requests({1}, is_large ? 200'000 : 1)).ok());
  });
}

TEST_F(Int8LookupsTest, IdsOutOfRangeGiveTensorFlowsErrors) {
  const auto original = Start(Original()), rewritten = Start(InInt8());
  for (const int64_t bad : {-1, kRows}) {
    const Feeds feeds = Requests({0, bad}, 1);
    for (tensorflow::Session* const session : {original.get(), rewritten.get()}) {
      const absl::Status status = Fetch(session, feeds).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("indices[1] = "));
      EXPECT_THAT(status.message(), HasSubstr("is not in [0, 20000)"));
      EXPECT_THAT(status.message(), HasSubstr("{{node lookup_of_id}}"));
    }
  }
}

TEST_F(Int8LookupsTest, ANodeThatWaitsForAReadOfTheTableWaitsForTheLookup) {
  GraphDef graph = Original();
  tensorflow::NodeDef* const wait = graph.add_node();
  wait->set_name("wait");
  wait->set_op("NoOp");
  wait->add_input("^read");
  tensorflow::NodeDef* const result = graph.add_node();
  result->set_name("result");
  result->set_op("Identity");
  result->add_input("joined");
  result->add_input("^wait");
  (*result->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  EXPECT_EQ(*GroupLookups({}, &graph), 2);
  EXPECT_EQ(*UseInt8Tables({"table"}, {}, &graph), 1);
  EXPECT_THAT(ReadBy(graph, Fetching("result")).float32, ElementsAre());
  const auto session = Start(graph);
  EXPECT_TRUE(Fetch(session.get(), Requests({1}, 2), "result:0").ok());
}

TEST_F(Int8LookupsTest, AnAssertBeforeTheReadStillRuns) {
  ops::Assert(scope_.WithOpName("check"), ops::Const(scope_, false),
              std::vector<tensorflow::Output>{ops::Const(scope_, "refused here")});
  GraphDef graph = Original();
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() == "read") node.add_input("^check");
  }
  ASSERT_EQ(*GroupLookups({}, &graph), 2);
  ASSERT_TRUE(UseInt8Tables({"table"}, {}, &graph).ok());
  const absl::Status status = Fetch(Start(graph).get(), Requests({1}, 2)).status();
  EXPECT_THAT(status.message(), HasSubstr("refused here"));
}

TEST_F(Int8LookupsTest, OtherAndFedVariablesStayInFloat32) {
  GraphDef graph = Original();
  EXPECT_EQ(*GroupLookups({}, &graph), 2);
  EXPECT_EQ(*UseInt8Tables({"another"}, {}, &graph), 0);
  EXPECT_EQ(*UseInt8Tables({"table"}, {"handle"}, &graph), 0);
}

}  // namespace
}  // namespace colcast::engine
