#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::Input;
using tensorflow::Output;
using tensorflow::Scope;
using tensorflow::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GraphDef Rewritten(const GraphDef& graph, int lookups, const std::set<std::string>& feeds = {}) {
  return RewrittenBy(GroupLookups, graph, lookups, feeds);
}

// Random graphs of features that a Concat joins, and requests for them. Some features have one row,
// which is repeated somewhere between the column and the Concat.
class RandomFeatures {
 public:
  explicit RandomFeatures(int seed) : random_(seed), scope_(Scope::NewRootScope()) {
    constexpr DataType kTypes[] = {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT, tensorflow::DT_HALF,
                                   tensorflow::DT_BFLOAT16, tensorflow::DT_DOUBLE};
    type_ = kTypes[Draw(5)];
    rows_ = Fed(scope_.WithOpName("rows"), tensorflow::DT_INT32, {1});
    std::vector<Output> parts = {Lookup(0), Lookup(1)};
    for (int i = 2; i < 2 + Draw(5); ++i) parts.push_back(Draw(3) == 0 ? Number(i) : Lookup(i));
    std::shuffle(parts.begin(), parts.end(), random_);
    ops::Concat(scope_.WithOpName("joined"), parts, Draw(2) == 0 ? 1 : -1);
    ops::NoOp(scope_.WithOpName("init").WithControlDependencies(inits_));
    graph = GraphOf(scope_);
  }

  // Random columns of `rows` rows.
  Feeds Columns(int64_t rows) {
    Feeds feeds;
    const int64_t list = Draw(65);
    Tensor number(tensorflow::DT_INT32, {1});
    number.flat<int32_t>()(0) = static_cast<int32_t>(rows);
    feeds.emplace_back("rows", number);
    for (const Column& column : columns_) {
      tensorflow::TensorShape shape({column.is_repeated ? 1 : rows});
      if (column.rank == 2) shape.AddDim(column.is_list ? list : 1);
      feeds.emplace_back(column.name, Values(column.type, shape));
    }
    return feeds;
  }

  GraphDef graph;
  int lookups = 0;

 private:
  struct Column {
    std::string name;
    DataType type;
    int rank;
    bool is_list;
    bool is_repeated;
  };

  // Where a feature's single row is repeated.
  enum Place { kColumn, kIds, kRows, kPart, kNowhere };

  int Draw(int below) { return static_cast<int>(random_() % below); }

  Tensor Values(DataType type, const tensorflow::TensorShape& shape) {
    Tensor values(type, shape);
    if (type == tensorflow::DT_STRING) {
      auto flat = values.flat<tensorflow::tstring>();
      for (int64_t i = 0; i < flat.size(); ++i) {
        if (i > 0 && Draw(3) == 0) {
          flat(i) = flat(i - 1);
        } else {
          flat(i) = std::string(Draw(100), static_cast<char>('a' + Draw(5)));
        }
      }
    } else if (type == tensorflow::DT_INT64) {
      auto flat = values.flat<int64_t>();
      for (int64_t i = 0; i < flat.size(); ++i) {
        flat(i) = Draw(3) == 0 ? static_cast<int64_t>(random_()) : Draw(40) - 20;
      }
    } else if (type == tensorflow::DT_INT32) {
      auto flat = values.flat<int32_t>();
      for (int64_t i = 0; i < flat.size(); ++i) flat(i) = static_cast<int32_t>(random_());
    } else {  // arbitrary bits, including NaN and denormals
      char* const bytes = static_cast<char*>(values.data());
      for (size_t i = 0; i < values.TotalBytes(); ++i) bytes[i] = static_cast<char>(Draw(256));
    }
    return values;
  }

  // Floats of very different magnitudes, including 0 and -0, but not NaN: the bits of a sum of NaNs
  // are undefined.
  Tensor Numbers(int rows, int width) {
    Tensor values(tensorflow::DT_FLOAT, {rows, width});
    auto flat = values.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      flat(i) = std::ldexp(static_cast<float>(Draw(2001) - 1000), Draw(60) - 30);
      if (Draw(20) == 0) flat(i) = -0.0f;
    }
    // If a hidden row is infinite, TensorFlow's sum is NaN.
    if (Draw(4) == 0) {
      for (int i = 0; i < width; i += 3) flat(i) = std::numeric_limits<float>::infinity();
    }
    return values;
  }

  Output NewColumn(int number, DataType type, int rank, bool is_list) {
    const std::string name = absl::StrCat("column_", number);
    place_ = Draw(2) == 0 ? kNowhere : static_cast<Place>(Draw(kNowhere));
    columns_.push_back({name, type, rank, is_list, place_ != kNowhere});
    std::vector<int64_t> dims(rank, -1);
    if (place_ != kNowhere) dims[0] = 1;
    if (rank == 2 && !is_list) dims[1] = 1;
    const Output column = Fed(scope_.WithOpName(name), type, dims);
    return RepeatedAt(kColumn, column, rank);
  }

  // Repeats the tensor if `place` is where this feature repeats its row.
  Output RepeatedAt(Place place, const Output& tensor, int rank) {
    if (place != place_) return tensor;
    if (rank == 1) return ops::Tile(scope_, tensor, ops::Concat(scope_, {rows_, Ones(0)}, 0));
    return ops::Tile(scope_, tensor, ops::Concat(scope_, {rows_, Ones(rank - 1)}, 0));
  }

  Output Ones(int count) { return ops::Fill(scope_, {count}, 1); }

  Output Number(int number) {
    const int rank = 1 + Draw(2);
    const Output column = NewColumn(number, type_, rank, false);
    Output part = column;
    if (rank == 1) {
      part = Draw(2) == 0 ? Output(ops::ExpandDims(scope_, column, 1))
                          : Output(ops::Reshape(scope_, column, {-1, 1}));
    }
    if (place_ == kIds || place_ == kRows) place_ = kPart;
    return RepeatedAt(kPart, part, 2);
  }

  // Ids below `rows`, whatever the column contains.
  Output Ids(int number, int rows, int rank, bool is_list) {
    constexpr DataType kTypes[] = {tensorflow::DT_INT64, tensorflow::DT_INT32,
                                   tensorflow::DT_STRING};
    const DataType type = kTypes[Draw(3)];
    Output ids = NewColumn(number, type, rank, is_list);
    if (rank == 1 && Draw(3) == 0) ids = ops::Reshape(scope_, ids, {-1});
    if (type == tensorflow::DT_STRING) return ops::StringToHashBucketFast(scope_, ids, rows);
    if (type == tensorflow::DT_INT32) {
      if (Draw(2) == 0) return ops::FloorMod(scope_, ids, rows);
      ids = ops::Cast(scope_, ids, tensorflow::DT_INT64);
    }
    const auto number64 = [](int value) { return Input(static_cast<int64_t>(value)); };
    switch (Draw(4)) {
      case 0:
        return ops::FloorMod(scope_, ids, number64(rows));
      case 1:
        return ops::StringToHashBucketFast(scope_, ops::AsString(scope_, ids), rows);
      case 2: {
        const auto least = ops::Maximum(scope_, ids, number64(-rows));
        const auto bounded = ops::Minimum(scope_, number64(rows - 1), least);
        return ops::SelectV2(scope_, ops::Less(scope_, bounded, number64(0)),
                             ops::AddV2(scope_, bounded, number64(rows)), bounded);
      }
      default: {
        const auto bounded = ops::ClipByValue(scope_, ids, number64(0), number64(rows - 1));
        return ops::Cast(scope_, bounded, tensorflow::DT_INT32);
      }
    }
  }

  Output Lookup(int number) {
    ++lookups;
    const bool sums = type_ == tensorflow::DT_FLOAT && Draw(2) == 0;
    constexpr int kWidths[] = {8, 16, 24, 40, 32, 64, 1, 3, 4, 17};
    const int width = kWidths[Draw(sums ? 6 : 10)];
    const int rows = 1 + Draw(50);
    const int rank = sums ? 2 : 1 + Draw(2);
    Output ids = Ids(number, rows, rank, sums);
    ids = RepeatedAt(kIds, ids, rank);
    const Output masked = ids;
    if (Draw(2) == 0) ids = Wrapped(ids, rows);
    Output part = Gather(sums ? Numbers(rows, width) : Values(type_, {rows, width}), ids);
    part = RepeatedAt(kRows, part, rank + 1);
    if (sums && place_ != kRows && Draw(2) == 0) {
      part = MaskedMean(part, masked);
    } else if (sums) {
      part = ops::Sum(scope_, part, 1);
    } else if (rank == 2) {
      part = ops::Reshape(scope_, part, {-1, width});
    }
    return RepeatedAt(kPart, part, 2);
  }

  Output Wrapped(const Output& ids, int rows) {
    const auto zero = ops::Cast(scope_, 0, ids.type());
    const auto added = ops::AddV2(scope_, ids, ops::Cast(scope_, rows, ids.type()));
    return ops::SelectV2(scope_, ops::Less(scope_, ids, zero), added, ids);
  }

  // The mean of values [rows, list, width], ignoring values with id 0.
  Output MaskedMean(const Output& values, const Output& ids) {
    const auto differs = ops::NotEqual(scope_, ids, ops::Cast(scope_, 0, ids.type()));
    const Output present = ops::Cast(scope_, differs, tensorflow::DT_FLOAT);
    Output mask = ops::ExpandDims(scope_, present, 2);
    if (Draw(2) == 0) {
      mask = ops::StridedSlice(scope_, present, {0, 0, 0}, {0, 0, 0}, {1, 1, 1},
                               ops::StridedSlice::BeginMask(3).EndMask(3).NewAxisMask(4));
    }
    const auto masked =
        Draw(2) == 0 ? ops::Mul(scope_, values, mask) : ops::Mul(scope_, mask, values);
    const auto number = ops::Maximum(scope_, ops::Sum(scope_, mask, 1), 1.0f);
    return ops::RealDiv(scope_, ops::Sum(scope_, masked, 1), number);
  }

  // Gathers from a constant, or in one of two ways from a variable.
  Output Gather(const Tensor& values, const Output& ids) {
    const auto constant = ops::Const(scope_, Input::Initializer(values));
    const int way = Draw(3);
    if (way == 0) return ops::GatherV2(scope_, constant, ids, 0);
    const auto handle =
        ops::VarHandleOp(scope_, type_, values.shape(),
                         ops::VarHandleOp::SharedName(absl::StrCat("table_", columns_.size())));
    inits_.push_back(ops::AssignVariableOp(scope_, handle, constant).operation);
    if (way == 1) return ops::ResourceGather(scope_, handle, ids, type_);
    return ops::GatherV2(scope_, ops::ReadVariableOp(scope_, handle, type_), ids, 0);
  }

  std::mt19937_64 random_;
  Scope scope_;
  DataType type_;
  Output rows_;
  Place place_ = kNowhere;  // place of the feature that is being made
  std::vector<Column> columns_;
  std::vector<tensorflow::Operation> inits_;
};

class GroupedLookupsBits : public ::testing::TestWithParam<int> {};

TEST_P(GroupedLookupsBits, EqualTheOriginalGraphs) {
  RandomFeatures features(GetParam());
  const auto original = SessionOf(features.graph);
  const auto rewritten = SessionOf(Rewritten(features.graph, features.lookups));
  for (const int64_t rows : {0, 1, 2, 33, 70}) {
    ExpectSameBits(rewritten.get(), original.get(), features.Columns(rows));
  }
}

INSTANTIATE_TEST_SUITE_P(RandomGraphs, GroupedLookupsBits, ::testing::Range(0, 150));

// joined = the rows `first` and the rows `second` of a variable, side by side.
class GroupedLookupsTest : public ::testing::Test {
 protected:
  GroupedLookupsTest() : scope_(Scope::NewRootScope()) {
    const auto first = Fed(scope_.WithOpName("first"), tensorflow::DT_INT64, {-1});
    const auto second = Fed(scope_.WithOpName("second"), tensorflow::DT_INT64, {-1});
    const auto ensured = ops::EnsureShape(scope_, second, tensorflow::PartialTensorShape({3}));
    table_ = ops::VarHandleOp(scope_.WithOpName("table"), tensorflow::DT_FLOAT, {5, 2});
    ops::AssignVariableOp(scope_.WithOpName("init"), table_, ops::Fill(scope_, {5, 2}, 1.0f));
    ops::AssignVariableOp(scope_.WithOpName("update"), table_, ops::Fill(scope_, {5, 2}, 2.0f));
    ops::DestroyResourceOp(scope_.WithOpName("destroy"), table_);
    const auto lookup = ops::ResourceGather(scope_.WithOpName("lookup_of_first"), table_, first,
                                            tensorflow::DT_FLOAT);
    ids_ = ops::Identity(scope_.WithOpName("ids"), ensured);
    const auto other = ops::ResourceGather(scope_.WithOpName("lookup_of_second"), table_, ids_,
                                           tensorflow::DT_FLOAT);
    ops::Concat(scope_.WithOpName("joined"), std::vector<Output>{lookup, other}, 1);
    after_ = ops::NoOp(scope_.WithOpName("after").WithControlDependencies(lookup.output));
  }

  // Expects both graphs to fail with the same code and this text.
  void ExpectError(const std::vector<int64_t>& first, const std::vector<int64_t>& second,
                   const std::string& text) {
    const Feeds feeds = {{"first", Ids(first)}, {"second", Ids(second)}};
    const GraphDef graph = GraphOf(scope_);
    for (const GraphDef& way : {graph, Rewritten(graph, 2)}) {
      const absl::Status status = Fetch(SessionOf(way).get(), feeds).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(status.message(), HasSubstr(text));
    }
  }

  Scope scope_;
  tensorflow::Output table_;
  Output ids_;
  tensorflow::Operation after_;
};

TEST_F(GroupedLookupsTest, IdsOutOfRangeGiveTensorFlowsErrors) {
  ExpectError({0, 1, 5}, {0, 0, 0}, "indices[2] = 5 is not in [0, 5)");
  ExpectError({0, 1, 4}, {0, -1, 0}, "indices[1] = -1 is not in [0, 5)");
  ExpectError({0, 1, 4}, {0, -1, 0}, "{{node lookup_of_second}}");
}

TEST_F(GroupedLookupsTest, WrongRowCountsGiveTensorFlowsErrors) {
  ExpectError({0, 1, 2}, {0, 0}, "[2] is not compatible with expected shape [3].");
  ExpectError({0, 1}, {0, 0, 0},
              "ConcatOp : Dimension 0 in both shapes must be equal: shape[0] = "
              "[2,2] vs. shape[1] = [3,2]");
}

// joined = the rows of `items` items, beside the user's repeated row. If `items` is -1, the input
// "rows" gives the number of items.
GraphDef WithRepeatedUser(int64_t items) {
  const Scope scope = Scope::NewRootScope();
  const Output user = Fed(scope.WithOpName("user"), tensorflow::DT_INT64, {1});
  const Output item = Fed(scope.WithOpName("item"), tensorflow::DT_INT64, {items});
  const Output rows = items < 0 ? Fed(scope.WithOpName("rows"), tensorflow::DT_INT32, {1})
                                : Output(ops::Shape(scope, item));
  const auto table = ops::Fill(scope, {5, 2}, 1.0f);
  const auto multiples = ops::Concat(scope, {Input(rows), Input({1})}, 0);
  const auto repeated = ops::Tile(scope, ops::GatherV2(scope, table, user, 0), multiples);
  const auto looked_up = ops::GatherV2(scope, table, item, 0);
  ops::Concat(scope.WithOpName("joined"), std::vector<Output>{looked_up, repeated}, 1);
  return GraphOf(scope);
}

TEST(GroupedLookups, IdsOfARepeatedRowAreChecked) {
  const auto error = [&](const GraphDef& graph, int32_t times, int64_t id) {
    Tensor number(tensorflow::DT_INT32, {1});
    number.flat<int32_t>()(0) = times;
    const Feeds feeds = {{"item", Ids({})}, {"user", Ids({id})}, {"rows", number}};
    return Fetch(SessionOf(graph).get(), feeds).status();
  };
  const GraphDef graph = WithRepeatedUser(-1);
  for (const GraphDef& way : {graph, Rewritten(graph, 2)}) {
    EXPECT_TRUE(error(way, 0, 4).ok());
    EXPECT_THAT(error(way, 0, 5).message(), HasSubstr("indices[0] = 5 is not in [0, 5)"));
    EXPECT_THAT(error(way, 3, 4).message(),
                HasSubstr("Dimension 0 in both shapes must be equal: shape[0] = [0,2] vs. "
                          "shape[1] = [3,2]"));
  }
}

TEST(GroupedLookups, ARowMayBeRepeatedAKnownNumberOfTimes) {
  const auto session = SessionOf(Rewritten(WithRepeatedUser(3), 2));
  const auto joined = Fetch(session.get(), {{"item", Ids({0, 1, 2})}, {"user", Ids({4})}});
  EXPECT_TRUE(joined.ok()) << joined.status();
}

TEST_F(GroupedLookupsTest, UpdatesAreSeenAndADestroyedVariableIsNotKept) {
  const auto session = SessionOf(Rewritten(GraphOf(scope_), 2));
  const Feeds feeds = {{"first", Ids({0, 1, 2})}, {"second", Ids({3, 4, 0})}};
  EXPECT_EQ(Fetch(session.get(), feeds)->flat<float>()(0), 1.0f);
  TF_CHECK_OK(session->Run({}, {}, {"update"}, nullptr));
  EXPECT_EQ(Fetch(session.get(), feeds)->flat<float>()(0), 2.0f);
  TF_CHECK_OK(session->Run({}, {}, {"destroy"}, nullptr));
  EXPECT_EQ(Fetch(session.get(), feeds).status().code(), absl::StatusCode::kNotFound);
  TF_CHECK_OK(session->Run({}, {}, {"update"}, nullptr));
  EXPECT_EQ(Fetch(session.get(), feeds)->flat<float>()(0), 2.0f);
}

TEST_F(GroupedLookupsTest, AChainBeginsAtAFedTensor) {
  const auto session = SessionOf(Rewritten(GraphOf(scope_), 2, {"ids"}));
  const auto joined = Fetch(session.get(), {{"first", Ids({0, 1, 2})}, {"ids", Ids({3, 4, 0})}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->dim_size(1), 4);
}

TEST_F(GroupedLookupsTest, ANodeThatWaitsForALookupWaitsForTheGroup) {
  EXPECT_THAT(InputsOf(Rewritten(GraphOf(scope_), 2), "after"), ElementsAre("^joined"));
}

TEST_F(GroupedLookupsTest, AChainMayBeginAfterAVocabulary) {
  const Scope scope = Scope::NewRootScope();
  const auto words = Fed(scope, tensorflow::DT_STRING, {-1});
  const auto vocabulary = ops::HashTable(scope, tensorflow::DT_STRING, tensorflow::DT_INT64);
  const auto ids = ops::LookupTableFind(scope, vocabulary, words, static_cast<int64_t>(0));
  const auto rows = ops::GatherV2(scope, ops::Fill(scope, {5, 2}, 1.0f), ids, 0);
  ops::Concat(scope.WithOpName("joined"), std::vector<Output>{rows, rows}, 1);
  Rewritten(GraphOf(scope), 2);
}

TEST_F(GroupedLookupsTest, ProductsAfterAGroupKeepTheirOrder) {
  const Scope scope = Scope::NewRootScope();
  const auto ids = Fed(scope.WithOpName("ids"), tensorflow::DT_INT64, {-1});
  const auto table = ops::Const(scope, {{0.1f, 0.7f}, {1.3f, -2.9f}, {3.1f, 0.3f}});
  const auto rows = ops::GatherV2(scope, table, ids, 0);
  const auto joined =
      ops::Concat(scope.WithOpName("joined"), std::vector<Output>{rows, rows, rows}, 1);
  const auto mean = ops::Mean(scope, joined, 1, ops::Mean::KeepDims(true));
  const auto weights = ops::Const(scope, {0.1f, 0.3f, 0.7f, 1.1f, 1.7f, 2.3f});
  ops::Mul(scope.WithOpName("product"), ops::Mul(scope, joined, mean), weights);
  const GraphDef graph = GraphOf(scope);
  ExpectSameBits(SessionOf(Rewritten(graph, 3, {"ids"})).get(), SessionOf(graph).get(),
                 {{"ids", Ids({0, 1, 2, 1, 0})}}, "product:0");
}

TEST_F(GroupedLookupsTest, AConcatAlongRowsIsNotRewritten) {
  const Scope scope = Scope::NewRootScope();
  const auto ids = Fed(scope, tensorflow::DT_INT64, {-1});
  const auto table = ops::Fill(scope, {5, 2}, 1.0f);
  const auto rows = ops::GatherV2(scope, table, ids, 0);
  ops::Concat(scope.WithOpName("joined"), std::vector<Output>{rows, rows}, 0);
  Rewritten(GraphOf(scope), 0);
}

}  // namespace
}  // namespace colcast::engine
