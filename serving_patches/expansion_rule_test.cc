// The expansion rule as a table: what a signature declares, what a request sends, and the result.
#include "serving_patches/expansion_rule.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace colcast {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT64;
using tensorflow::DT_INVALID;
using tensorflow::DT_STRING;
using ::testing::ElementsAreArray;

constexpr InputAction kPass = InputAction::kPass;
constexpr InputAction kExpand = InputAction::kExpand;
constexpr InputAction kDefault = InputAction::kDefault;

DeclaredInput Input(std::string alias, tensorflow::DataType dtype, Dims dims) {
  DeclaredInput input;
  input.alias = std::move(alias);
  input.dtype = dtype;
  input.dims = std::move(dims);
  return input;
}

DeclaredInput AnyShape(std::string alias, tensorflow::DataType dtype) {
  DeclaredInput input = Input(std::move(alias), dtype, {});
  input.unknown_rank = true;
  return input;
}

DeclaredInput WithDefault(DeclaredInput input, tensorflow::DataType dtype,
                          const std::vector<int64_t>& dims) {
  input.has_default = true;
  input.default_dtype = dtype;
  input.default_dims.assign(dims.begin(), dims.end());
  return input;
}

struct Sent {
  bool absent = true;
  tensorflow::DataType dtype = DT_INVALID;
  std::vector<int64_t> dims;
};

Sent Float(std::vector<int64_t> dims) { return {false, DT_FLOAT, std::move(dims)}; }
Sent Int64(std::vector<int64_t> dims) { return {false, DT_INT64, std::move(dims)}; }
const Sent kAbsent = {};

const DeclaredInput user = Input("user", DT_FLOAT, {-1});
const DeclaredInput item = Input("item", DT_FLOAT, {-1});
const DeclaredInput vector = Input("vector", DT_FLOAT, {-1, 3});
const DeclaredInput column = Input("column", DT_FLOAT, {-1, 1});
const DeclaredInput history = Input("history", DT_INT64, {-1, -1});
const DeclaredInput scalar = Input("scalar", DT_FLOAT, {});
const DeclaredInput fixed = Input("fixed", DT_FLOAT, {2});
const DeclaredInput late = Input("late", DT_FLOAT, {1});
const DeclaredInput any = AnyShape("any", DT_FLOAT);
const DeclaredInput any_dtype = Input("any_dtype", DT_INVALID, {-1});
const DeclaredInput price = WithDefault(Input("price", DT_FLOAT, {-1}), DT_FLOAT, {1});

std::vector<ReceivedShape> Received(const std::vector<Sent>& sent) {
  std::vector<ReceivedShape> received;
  for (const Sent& input : sent) received.push_back({input.absent, input.dtype, input.dims});
  return received;
}

struct Legal {
  std::string name;
  std::vector<DeclaredInput> declared;
  std::vector<Sent> sent;
  int64_t rows;
  std::vector<InputAction> actions;
};
std::ostream& operator<<(std::ostream& out, const Legal& row) { return out << row.name; }

// The inputs of the exporter's columnar_pair: states of users and items, and each row's user.
std::vector<DeclaredInput> Pair() {
  std::vector<DeclaredInput> declared = {
      Input("item_state/0", DT_FLOAT, {-1, 8}),
      Input("position", DT_FLOAT, {-1}),
      WithDefault(Input("row_to_user", DT_INT64, {-1}), DT_INT64, {1}),
      Input("user_state/0", DT_FLOAT, {-1, 4}),
      Input("user_state/1", DT_FLOAT, {-1, -1, 4}),
      WithDefault(Input("user_state/row", DT_INT64, {-1}), DT_INT64, {1}),
  };
  FindOtherDomains(absl::MakeSpan(declared));
  return declared;
}

// A list that the exporter wrote, beside an item.
std::vector<DeclaredInput> List() {
  std::vector<DeclaredInput> declared = {
      WithDefault(history, DT_INT64, {1, 0}),
      WithDefault(Input("history/length", DT_INT64, {-1}), DT_INT64, {1}),
      item,
  };
  PairLists(absl::MakeSpan(declared));
  return declared;
}

class LegalTest : public ::testing::TestWithParam<Legal> {};

TEST_P(LegalTest, IsPlanned) {
  Legal row = GetParam();
  FindOtherDomains(absl::MakeSpan(row.declared));
  ExpansionPlan plan;
  const absl::Status status = PlanExpansion(row.declared, Received(row.sent), &plan);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(plan.rows, row.rows);
  EXPECT_THAT(plan.actions, ElementsAreArray(row.actions));
}

INSTANTIATE_TEST_SUITE_P(
    Rule, LegalTest,
    ::testing::ValuesIn(std::vector<Legal>{
        {"AllRowsSent", {user, item}, {Float({3}), Float({3})}, 3, {kPass, kPass}},
        {"UserOnce", {user, item}, {Float({1}), Float({3})}, 3, {kExpand, kPass}},
        {"OneCandidate", {user, item}, {Float({1}), Float({1})}, 1, {kPass, kPass}},
        {"InnerDimensions",
         {vector, history, item},
         {Float({1, 3}), Int64({1, 7}), Float({500})},
         500,
         {kExpand, kExpand, kPass}},
        {"EmptyHistory", {history, item}, {Int64({1, 0}), Float({4})}, 4, {kExpand, kPass}},
        {"AbsentList", List(), {kAbsent, kAbsent, Float({4})}, 4, {kDefault, kDefault, kPass}},
        {"SentList", List(), {Int64({1, 2}), Int64({1}), Float({1})}, 1, {kPass, kPass, kPass}},
        {"ScalarPasses", {scalar, item}, {Float({}), Float({4})}, 4, {kPass, kPass}},
        {"FixedDoesNotCount",
         {fixed, user, item},
         {Float({2}), Float({1}), Float({1})},
         1,
         {kPass, kPass, kPass}},
        {"LateUserStaysOneRow", {late, item}, {Float({1}), Float({9})}, 9, {kPass, kPass}},
        {"UnknownRankPassesAsItCame", {any, item}, {Float({1, 8}), Float({5})}, 5, {kPass, kPass}},
        {"UnknownRankDoesNotCount", {any, user}, {Float({5, 2}), Float({1})}, 1, {kPass, kPass}},
        {"UnknownRankSentAScalar", {any, item}, {Float({}), Float({5})}, 5, {kPass, kPass}},
        {"UnknownRankWithoutRows", {any, item}, {Float({0}), Float({5})}, 5, {kPass, kPass}},
        {"UnknownRankAlone", {any}, {Float({5, 2})}, 5, {kPass}},
        {"UnknownRankAloneSentAScalar", {any}, {Float({})}, 1, {kPass}},
        {"UnknownRankOnly", {any, any}, {Float({2}), Float({3})}, 1, {kPass, kPass}},
        {"DefaultOfUnknownRankPasses",
         {WithDefault(any, DT_FLOAT, {1}), item},
         {kAbsent, Float({5})},
         5,
         {kDefault, kPass}},
        {"UndeclaredDtype", {any_dtype, item}, {Int64({1}), Float({2})}, 2, {kExpand, kPass}},
        {"NoRows", {user, item}, {Float({0}), Float({0})}, 0, {kPass, kPass}},
        {"NoBatchedInput", {scalar, fixed}, {Float({}), Float({2})}, 1, {kPass, kPass}},
        {"NoInputs", {}, {}, 1, {}},
        {"AloneWithoutItsLastDimension", {column}, {Float({3})}, 3, {kPass}},
        {"AloneWithOneDimensionMore", {user}, {Float({3, 1})}, 3, {kPass}},
        {"AloneAsAScalar", {column}, {Float({})}, 1, {kPass}},
        {"DefaultIsExpanded", {price, item}, {kAbsent, Float({5})}, 5, {kDefault, kPass}},
        {"DefaultIsOverridden", {price, item}, {Float({1}), Float({5})}, 5, {kExpand, kPass}},
        {"AllDefault", {price, price}, {kAbsent, kAbsent}, 1, {kDefault, kDefault}},
        {"DefaultOfAScalar",
         {WithDefault(scalar, DT_FLOAT, {}), item},
         {kAbsent, Float({5})},
         5,
         {kDefault, kPass}},
        {"DefaultOfManyRowsCountsAsIfSent",
         {WithDefault(user, DT_FLOAT, {3}), item},
         {kAbsent, Float({1})},
         3,
         {kDefault, kExpand}},
        {"ThreeUsersOfSevenCandidates",
         Pair(),
         {Float({7, 8}), Float({7}), Int64({7}), Float({3, 4}), Float({3, 2, 4}), Int64({3})},
         7,
         {kPass, kPass, kPass, kPass, kPass, kPass}},
        {"AUserOfSevenCandidates",
         Pair(),
         {Float({7, 8}), Float({1}), kAbsent, Float({1, 4}), Float({1, 2, 4}), kAbsent},
         7,
         {kPass, kExpand, kDefault, kPass, kPass, kDefault}},
        {"SixUsersOfACandidate",
         Pair(),
         {Float({1, 8}), Float({1}), Int64({1}), Float({6, 4}), Float({6, 2, 4}), Int64({6})},
         1,
         {kPass, kPass, kPass, kPass, kPass, kPass}},
        {"OneItemForEachOfThreeUsers",
         Pair(),
         {Float({1, 8}), Float({1}), Int64({3}), Float({3, 4}), Float({3, 2, 4}), Int64({3})},
         3,
         {kExpand, kExpand, kPass, kPass, kPass, kPass}},
    }),
    [](const auto& info) { return info.param.name; });

struct Illegal {
  std::string name;
  std::vector<DeclaredInput> declared;
  std::vector<Sent> sent;
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const Illegal& row) { return out << row.name; }

class IllegalTest : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalTest, IsRefusedNamingTheCulprits) {
  Illegal row = GetParam();
  FindOtherDomains(absl::MakeSpan(row.declared));
  ExpansionPlan plan;
  const absl::Status status = PlanExpansion(row.declared, Received(row.sent), &plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), row.message);
}

INSTANTIATE_TEST_SUITE_P(
    Rule, IllegalTest,
    ::testing::ValuesIn(std::vector<Illegal>{
        {"TwoRowsBesideThree",
         {user, item},
         {Float({2}), Float({3})},
         R"(input "user" has 2 rows; expected 1 or N = 3, the rows of input "item")"},
        {"EveryOffenderIsNamed",
         {user, vector, item},
         {Float({2}), Float({4, 3}), Float({5})},
         R"(input "user" has 2 rows; input "vector" has 4 rows; expected 1 or N = 5, )"
         R"(the rows of input "item")"},
        {"NoRowsBesideOne",
         {user, item},
         {Float({1}), Float({0})},
         R"(input "item" has 0 rows; expected N = 1, the rows of input "user")"},
        {"NoRowsBesideThree",
         {user, item},
         {Float({0}), Float({3})},
         R"(input "user" has 0 rows; expected 1 or N = 3, the rows of input "item")"},
        {"DefaultOfTwoRowsBesideThree",
         {WithDefault(user, DT_FLOAT, {2}), item},
         {kAbsent, Float({3})},
         R"(the default of input "user" has 2 rows; expected 1 or N = 3, )"
         R"(the rows of input "item")"},
        {"RowToUserOfNeitherOneNorAllRows",
         Pair(),
         {Float({7, 8}), Float({7}), Int64({3}), Float({3, 4}), Float({3, 2, 4}), Int64({3})},
         R"(input "row_to_user" has 3 rows; expected 1 or N = 7, the rows of input "item_state/0")"},
        {"AStateThatDoesNotFit",
         Pair(),
         {Float({7, 8}), Float({7}), Int64({7}), Float({3, 5}), Float({3, 2, 4}), Int64({3})},
         R"(input "user_state/0" is float [3,5], declared float [?,4])"},
        {"Missing",
         {user, item},
         {kAbsent, Float({3})},
         R"(input "user" is missing and has no default (declared float [?]))"},
        {"ListWithoutLengths",
         List(),
         {Int64({1, 2}), kAbsent, Float({1})},
         R"(input "history/length" is missing and input "history" is not (declared int64 [?]))"},
        {"LengthsWithoutList",
         List(),
         {kAbsent, Int64({1}), Float({1})},
         R"(input "history" is missing and input "history/length" is not (declared int64 [?,?]))"},
        {"Dtype",
         {user, item},
         {Int64({1}), Float({3})},
         R"(input "user" is int64 [1], declared float [?])"},
        {"InnerDimension",
         {vector, item},
         {Float({1, 4}), Float({3})},
         R"(input "vector" is float [1,4], declared float [?,3])"},
        {"RankTooSmall",
         {vector, item},
         {Float({3}), Float({3})},
         R"(input "vector" is float [3], declared float [?,3])"},
        {"ScalarForAColumn",
         {user, item},
         {Float({}), Float({3})},
         R"(input "user" is float [], declared float [?])"},
        {"LastDimensionLeftOutBesideOthers",
         {column, item},
         {Float({3}), Float({3})},
         R"(input "column" is float [3], declared float [?,1])"},
        {"AloneWithAnotherInnerDimension",
         {vector},
         {Float({2, 4})},
         R"(input "vector" is float [2,4], declared float [?,3])"},
        {"AloneWithAnotherDtype",
         {user},
         {Int64({2})},
         R"(input "user" is int64 [2], declared float [?])"},
        {"RowsForAScalar",
         {scalar, item},
         {Float({3}), Float({3})},
         R"(input "scalar" is float [3], declared float [])"},
        {"FixedFirstDimension",
         {fixed, item},
         {Float({1}), Float({3})},
         R"(input "fixed" is float [1], declared float [2])"},
        {"LateUserSentOnEveryRow",
         {late, item},
         {Float({3}), Float({3})},
         R"(input "late" is float [3], declared float [1])"},
        {"NegativeDimension",
         {history, item},
         {Int64({1, -1}), Float({3})},
         R"(input "history" is int64 [1,-1], a shape that no tensor has, declared int64 [?,?])"},
        {"NegativeDimensionOfUnknownRank",
         {any},
         {Float({-3})},
         R"(input "any" is float [-3], a shape that no tensor has, declared float of any shape)"},
        {"MoreElementsThanCanBeCounted",
         {any, item},
         {Float({int64_t{1} << 62, int64_t{1} << 62}), Float({3})},
         R"(input "any" is float [4611686018427387904,4611686018427387904], a shape that no tensor )"
         R"(has, declared float of any shape)"},
        {"MoreElementsThanCanBeCountedBeforeAZero",
         {any, item},
         {Float({int64_t{1} << 40, int64_t{1} << 40, 0}), Float({3})},
         R"(input "any" is float [1099511627776,1099511627776,0], a shape that no tensor has, )"
         R"(declared float of any shape)"},
        {"MoreBytesThanCanBeCounted",
         {vector, item},
         {Float({int64_t{1} << 61, 3}), Float({3})},
         R"(input "vector" is float [2305843009213693952,3], a shape that no tensor has, )"
         R"(declared float [?,3])"},
        {"DefaultThatDoesNotFit",
         {WithDefault(vector, DT_FLOAT, {1, 2}), item},
         {kAbsent, Float({3})},
         R"(the default of input "vector" is float [1,2], declared float [?,3])"},
        {"MissingAndMisfitTogether",
         {user, vector, item},
         {kAbsent, Int64({1, 3}), Float({3})},
         R"(input "user" is missing and has no default (declared float [?]); )"
         R"(input "vector" is int64 [1,3], declared float [?,3])"},
    }),
    [](const auto& info) { return info.param.name; });

bool IsBatchedBeside(const std::string& alias, DeclaredInput index) {
  std::vector<DeclaredInput> declared = {Input(alias, DT_FLOAT, {-1}), std::move(index)};
  FindOtherDomains(absl::MakeSpan(declared));
  return declared[0].batched();
}

TEST(FindOtherDomainsTest, StatesBelongToTheDomainOfTheirIndex) {
  const DeclaredInput row_to_user = Input("row_to_user", DT_INT64, {-1});
  const DeclaredInput row_to_shop = Input("row_to_shop", DT_INT64, {-1});
  EXPECT_FALSE(IsBatchedBeside("user_state/0", row_to_user));
  EXPECT_FALSE(IsBatchedBeside("user_state/row", row_to_user));
  EXPECT_FALSE(IsBatchedBeside("shop_state/0", row_to_shop));
  EXPECT_TRUE(IsBatchedBeside("user_state/0", row_to_shop));
  EXPECT_TRUE(IsBatchedBeside("item_state/0", row_to_user));
  EXPECT_TRUE(IsBatchedBeside("user_state", row_to_user));
  EXPECT_TRUE(IsBatchedBeside("user_age", row_to_user));
}

TEST(FindOtherDomainsTest, OnlyAnInt64VectorIsAnIndex) {
  EXPECT_TRUE(IsBatchedBeside("user_state/0", Input("row_to_user", DT_FLOAT, {-1})));
  EXPECT_TRUE(IsBatchedBeside("user_state/0", Input("row_to_user", DT_INT64, {-1, 1})));
  EXPECT_TRUE(IsBatchedBeside("user_state/0", Input("row_to_user", DT_INT64, {1})));
  EXPECT_TRUE(IsBatchedBeside("user_state/0", AnyShape("row_to_user", DT_INT64)));
  EXPECT_TRUE(IsBatchedBeside("_state/0", Input("row_to_", DT_INT64, {-1})));
}

TEST(PlanExpansionTest, AMessageFitsGrpcMetadata) {
  std::vector<DeclaredInput> declared;
  for (int i = 0; i < 1000; ++i) {
    declared.push_back(Input(absl::StrCat("feature_", i), DT_STRING, {-1}));
  }
  ExpansionPlan plan;
  const absl::Status status =
      PlanExpansion(declared, std::vector<ReceivedShape>(declared.size()), &plan);
  EXPECT_LT(status.message().size(), 5000u);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("\"feature_0\""));
  EXPECT_THAT(std::string(status.message()), ::testing::ContainsRegex("and [0-9]+ more$"));
}

TEST(PlanExpansionTest, APlanIsReusedWithoutAllocating) {
  ExpansionPlan plan;
  const std::vector<DeclaredInput> two = {user, item};
  ASSERT_TRUE(PlanExpansion(two, Received({Float({1}), Float({3})}), &plan).ok());
  const InputAction* const memory = plan.actions.data();
  ASSERT_TRUE(PlanExpansion({item}, Received({Float({2})}), &plan).ok());
  EXPECT_EQ(plan.rows, 2);
  EXPECT_THAT(plan.actions, ElementsAreArray({kPass}));
  EXPECT_EQ(plan.actions.data(), memory);
}

}  // namespace
}  // namespace colcast
