#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::Output;
using tensorflow::Scope;
using tensorflow::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Converts a number to a value: the number itself, or its text; 0 is the padding.
void Set(int value, int64_t* to) { *to = value; }
void Set(int value, tensorflow::tstring* to) {
  *to =
      value == 0 ? "" : absl::StrCat(value, value % 3 == 0 ? ", a text longer than 23 bytes" : "");
}

template <typename T>
Tensor Values(const tensorflow::TensorShape& shape, const std::vector<int>& numbers) {
  Tensor values(tensorflow::DataTypeToEnum<T>::value, shape);
  for (size_t i = 0; i < numbers.size(); ++i) Set(numbers[i], &values.flat<T>()(i));
  return values;
}

Tensor Values(DataType type, const tensorflow::TensorShape& shape,
              const std::vector<int>& numbers) {
  return type == tensorflow::DT_STRING ? Values<tensorflow::tstring>(shape, numbers)
                                       : Values<int64_t>(shape, numbers);
}

struct Model {
  DataType type = tensorflow::DT_STRING;
  bool is_list = true;
  bool has_token = true;
  int token = 0;
  int padding = 0;
  int64_t first = 0;  // where the list begins
};

// ids = the ids of a column's values in a vocabulary of 1 to 9, which `init` fills.
GraphDef GraphOf(const Model& model) {
  const Scope scope = Scope::NewRootScope();
  const auto table = ops::HashTable(scope, model.type, tensorflow::DT_INT64);
  const Tensor keys = Values(model.type, {9}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto known = ops::Range(scope, int64_t{2}, int64_t{11}, int64_t{1});
  ops::LookupTableImport(scope.WithOpName("init"), table,
                         ops::Const(scope, tensorflow::Input::Initializer(keys)), known);
  const auto scalar = [&](int number) {
    return ops::Const(scope, tensorflow::Input::Initializer(Values(model.type, {}, {number})));
  };
  const int64_t open = -1;
  Output values = Fed(scope.WithOpName("column"), model.type, {open, open});
  if (model.is_list) {
    const auto lengths = Fed(scope.WithOpName("lengths"), tensorflow::DT_INT64, {open});
    const auto most = ops::Max(scope, lengths, 0, ops::Max::KeepDims(true));
    const auto longest = ops::Maximum(scope, most, {int64_t{0}});
    const auto end = ops::Reshape(scope, longest, ops::Const<int>(scope, {}, {0}));
    const auto steps = ops::Range(scope, model.first, end, int64_t{1});
    const auto indices = ops::Where(scope.WithOpName("indices"),
                                    ops::Less(scope, steps, ops::ExpandDims(scope, lengths, 1)));
    const auto rows = ops::Shape(scope, lengths, ops::Shape::OutType(tensorflow::DT_INT64));
    const auto shape = ops::Concat(scope, {rows.output, longest.z}, 0);
    values = ops::SparseToDense(scope, indices, shape,
                                ops::GatherNd(scope.WithOpName("gathered"), values, indices),
                                scalar(model.padding));
  }
  const Scope named = scope.WithOpName(model.has_token ? "looked_up" : "ids");
  const auto found = ops::LookupTableFind(named, table, values, int64_t{1});
  if (model.has_token) {
    ops::SelectV2(scope.WithOpName("ids"), ops::Equal(scope, values, scalar(model.token)),
                  int64_t{0}, found.values);
  }
  ops::NoOp(scope.WithOpName("after").WithControlDependencies(found.values));
  return engine::GraphOf(scope);
}

GraphDef Rewritten(const GraphDef& graph, int lookups, const std::set<std::string>& feeds = {}) {
  return RewrittenBy(ReplaceVocabularyLookups, graph, lookups, feeds);
}

absl::StatusOr<Tensor> IdsIn(tensorflow::Session* session, const Feeds& feeds) {
  return Fetch(session, feeds, "ids:0");
}

class VocabularyLookupsIds : public ::testing::TestWithParam<int> {
 protected:
  VocabularyLookupsIds() : random_(GetParam()) {
    model_.type = Draw(2) == 0 ? tensorflow::DT_STRING : tensorflow::DT_INT64;
    model_.is_list = Draw(3) != 0;
    model_.has_token = !model_.is_list || Draw(3) != 0;
    model_.token = Draw(3) == 0 ? Draw(12) : 0;
    model_.padding = Draw(3) == 0 ? Draw(12) : 0;
  }

  int Draw(int below) { return static_cast<int>(random_() % below); }

  // Random values: some are unknown, the token or padding, and some rows repeat the row above.
  Feeds Columns(int rows) {
    const int longest = Draw(65);
    const int width = longest + (Draw(2) == 0 ? 0 : Draw(5));
    std::vector<int> values;
    std::vector<int64_t> lengths;
    for (int row = 0; row < rows; ++row) {
      lengths.push_back(row > 0 && Draw(2) == 0 ? lengths.back() : Draw(longest + 2) - 1);
      const bool repeats = row > 0 && Draw(2) == 0;
      for (int i = 0; i < width; ++i) {
        values.push_back(repeats ? values[values.size() - width] : Draw(12));
      }
    }
    Feeds feeds = {{"column", Values(model_.type, {rows, width}, values)}};
    if (model_.is_list) feeds.emplace_back("lengths", Ids(lengths));
    return feeds;
  }

  std::mt19937_64 random_;
  Model model_;
};

TEST_P(VocabularyLookupsIds, EqualTensorFlowsIds) {
  const GraphDef graph = GraphOf(model_);
  const auto original = SessionOf(graph);
  const auto rewritten = SessionOf(Rewritten(graph, 1));
  for (const int rows : {0, 1, 2, 33, 70}) {
    ExpectSameBits(rewritten.get(), original.get(), Columns(rows), "ids:0");
  }
}

INSTANTIATE_TEST_SUITE_P(RandomModels, VocabularyLookupsIds, ::testing::Range(0, 100));

// Expects the original and the rewritten graph to fail in the same way.
void ExpectError(const Feeds& feeds, absl::StatusCode code, const std::string& text, bool init) {
  GraphDef graph = GraphOf({});
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (!init && node.name() == "init") node.set_name("not_run");
  }
  for (const GraphDef& way : {graph, Rewritten(graph, 1)}) {
    const absl::Status status = IdsIn(SessionOf(way).get(), feeds).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
}

TEST(VocabularyLookupsTest, ALengthBeyondTheColumnsWidthGivesTensorFlowsError) {
  const Tensor column = Values(tensorflow::DT_STRING, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto code = absl::StatusCode::kInvalidArgument;
  ExpectError({{"column", column}, {"lengths", Ids({2, 5})}}, code,
              "indices[6] = [1, 4] does not index into param shape [2,3], node name: gathered",
              true);
  ExpectError({{"column", column}, {"lengths", Ids({-1, 3, 1})}}, code,
              "indices[3] = [2, 0] does not index into param shape [2,3], node name: gathered",
              true);
  ExpectError({{"column", Values(tensorflow::DT_STRING, {2, 0}, {})}, {"lengths", Ids({0, 1})}},
              code, "Requested more than 0 entries, but params is empty.  Params shape: [2,0]",
              true);
}

TEST(VocabularyLookupsTest, AnUninitializedVocabularyGivesTensorFlowsError) {
  ExpectError({{"column", Values(tensorflow::DT_STRING, {1, 1}, {1})}, {"lengths", Ids({1})}},
              absl::StatusCode::kFailedPrecondition, "Table not initialized", false);
}

TEST(VocabularyLookupsTest, RowsBeyondTheLengthsAreIgnored) {
  const Feeds feeds = {{"column", Values(tensorflow::DT_STRING, {2, 2}, {1, 2, 3, 4})},
                       {"lengths", Ids({2})}};
  const auto ids = IdsIn(SessionOf(Rewritten(GraphOf({}), 1)).get(), feeds);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(ids->dim_size(0), 1);
  EXPECT_EQ(ids->flat<int64_t>()(1), 3);
}

TEST(VocabularyLookupsTest, ANodeThatWaitsForTheLookupWaitsForTheOp) {
  EXPECT_THAT(InputsOf(Rewritten(GraphOf({}), 1), "after"), ElementsAre("^ids"));
}

TEST(VocabularyLookupsTest, FedLookupsAndLookupsWithoutTokenOrListAreNotReplaced) {
  Model alone;
  alone.is_list = alone.has_token = false;
  Rewritten(GraphOf(alone), 0);
  Rewritten(GraphOf({}), 0, {"looked_up"});
}

TEST(VocabularyLookupsTest, ALookupWhoseDefaultIsNotAScalarIsNotReplaced) {
  GraphDef graph = GraphOf({});
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.op() == "LookupTableFindV2") *node.mutable_input(2) = "lengths";
  }
  Rewritten(graph, 0);
}

TEST(VocabularyLookupsTest, FedListsAndListsWithAnOffsetAreLeftToTensorFlow) {
  const auto is_padded = ::testing::Contains(::testing::StartsWith("SparseToDense"));
  EXPECT_THAT(InputsOf(Rewritten(GraphOf({}), 1, {"indices"}), "ids"), is_padded);
  Model other;
  other.first = 1;
  EXPECT_THAT(InputsOf(Rewritten(GraphOf(other), 1), "ids"), is_padded);
}

}  // namespace
}  // namespace colcast::engine
