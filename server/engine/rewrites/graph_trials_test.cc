#include "server/engine/rewrites/graph_trials.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

DeclaredInput Input(const char* alias, tensorflow::DataType dtype, Dims dims) {
  DeclaredInput input;
  input.alias = alias;
  input.dtype = dtype;
  input.dims = std::move(dims);
  return input;
}

// A user's column, an item's, and a list with its lengths.
std::vector<DeclaredInput> Inputs() {
  return {Input("user", tensorflow::DT_INT64, {1}), Input("item", tensorflow::DT_STRING, {-1}),
          Input("list", tensorflow::DT_INT64, {-1, -1}),
          Input("list/length", tensorflow::DT_INT64, {-1})};
}

// Answers nothing, as fast as can be.
const GraphRun kAnswers = [](const Tensors&, Tensors*) { return absl::OkStatus(); };

TEST(GenerateFeeds, HaveTheDeclaredShapes) {
  const TrialFeeds feeds = GenerateFeeds(Inputs(), 20, 50);
  EXPECT_EQ(feeds.rows, 20);
  EXPECT_EQ(feeds.tensors[0].shape(), tensorflow::TensorShape({1}));
  EXPECT_EQ(feeds.tensors[1].shape(), tensorflow::TensorShape({20}));
  EXPECT_EQ(feeds.tensors[2].shape(), tensorflow::TensorShape({20, 3}));
  for (int i = 0; i < 20; ++i) EXPECT_LE(feeds.tensors[3].flat<int64_t>()(i), 3);
}

TEST(GenerateFeeds, HaveValuesOfEveryType) {
  for (const tensorflow::DataType dtype :
       {tensorflow::DT_INT64, tensorflow::DT_INT32, tensorflow::DT_INT16, tensorflow::DT_INT8,
        tensorflow::DT_UINT64, tensorflow::DT_UINT32, tensorflow::DT_UINT16, tensorflow::DT_UINT8,
        tensorflow::DT_DOUBLE, tensorflow::DT_FLOAT, tensorflow::DT_HALF, tensorflow::DT_BFLOAT16,
        tensorflow::DT_BOOL}) {
    const std::vector<DeclaredInput> inputs = {Input("x", dtype, {-1})};
    const Tensor made = GenerateFeeds(inputs, 20, 50).tensors[0];
    EXPECT_NE(made.tensor_data(), std::string(made.TotalBytes(), '\0'));
    EXPECT_FALSE(
        RunTrials(inputs, {}, kAnswers, {{2}, 1, 3600}, WorkClockOf(true)).answered.empty())
        << tensorflow::DataTypeString(dtype);
  }
}

TEST(WithRows, TakesTheFirstOrAllAgain) {
  const std::vector<DeclaredInput> inputs = Inputs();
  const TrialFeeds three = GenerateFeeds(inputs, 3, 50);
  const TrialFeeds two = WithRows(inputs, three, 2), seven = WithRows(inputs, three, 7);
  EXPECT_EQ(two.tensors[0].tensor_data(), three.tensors[0].tensor_data());
  for (int64_t row = 0; row < 7; ++row) {
    const auto same = [row](const Tensor& from, const Tensor& to) {
      return from.SubSlice(row % 3).flat<tensorflow::tstring>()(0) ==
             to.SubSlice(row).flat<tensorflow::tstring>()(0);
    };
    EXPECT_TRUE(same(three.tensors[1], seven.tensors[1]));
    EXPECT_EQ(three.tensors[2].SubSlice(row % 3).unaligned_flat<int64_t>()(2),
              seven.tensors[2].SubSlice(row).unaligned_flat<int64_t>()(2));
    if (row < 2) {
      EXPECT_TRUE(same(three.tensors[1], two.tensors[1]));
    }
  }
}

TEST(RunTrials, EveryNumberOfRowsIsTriedWithBothKinds) {
  const std::vector<DeclaredInput> inputs = Inputs();
  const std::vector<TrialFeeds> recorded = {GenerateFeeds(inputs, 5, 50)};
  const Trials trials =
      RunTrials(inputs, recorded, kAnswers, {{2, 30}, 2, 3600}, WorkClockOf(true));
  std::vector<std::pair<int64_t, bool>> ran;
  for (const Trial& trial : trials.answered) ran.emplace_back(trial.feeds.rows, trial.recorded);
  const std::vector<std::pair<int64_t, bool>> expected = {{2, false},  {2, true},   {5, true},
                                                          {20, false}, {30, false}, {30, true}};
  EXPECT_EQ(ran, expected);
  EXPECT_FALSE(trials.lacked_time);
}

TEST(RunTrials, SmallerValuesAreTriedWhereLargeOnesFail) {
  const std::vector<DeclaredInput> inputs = {Input("id", tensorflow::DT_INT64, {-1})};
  const GraphRun only_zeros = [](const Tensors& feeds, Tensors*) {
    for (int64_t i = 0; i < feeds[0].NumElements(); ++i) {
      if (feeds[0].flat<int64_t>()(i) != 0) return absl::InvalidArgumentError("no such row");
    }
    return absl::OkStatus();
  };
  EXPECT_FALSE(
      RunTrials(inputs, {}, only_zeros, {{2}, 2, 3600}, WorkClockOf(true)).answered.empty());
}

// A table whose rows are looked up by the input as it is.
GraphRun LooksUp(int64_t rows, std::set<int64_t>* ids) {
  return [rows, ids](const Tensors& feeds, Tensors*) {
    for (int64_t i = 0; i < feeds[0].NumElements(); ++i) {
      const int64_t id = feeds[0].flat<int64_t>()(i);
      if (id >= rows) return absl::InvalidArgumentError("no such row");
      ids->insert(id);
    }
    return absl::OkStatus();
  };
}

TEST(RunTrials, IdsAreOfTheWholeTableItsLastRowAndOneBeyond) {
  const std::vector<DeclaredInput> inputs = {Input("id", tensorflow::DT_INT64, {-1})};
  std::set<int64_t> ids;
  const Trials trials =
      RunTrials(inputs, {}, LooksUp(1'000'000, &ids),
                {{500}, 2, 3600, {{"id", {1'000'000, 1'000'000}}}}, WorkClockOf(true));
  EXPECT_EQ(*ids.rbegin(), 999'999);
  EXPECT_GT(ids.size(), 450u);
  ASSERT_EQ(trials.refused.size(), 1u);
  EXPECT_EQ(trials.refused[0].code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trials.refused[0].feeds.tensors[0].flat<int64_t>()(0), 1'000'000);
}

TEST(RunTrials, IdsAreOfTheSmallestTableWhereLargerOnesAreRefused) {
  const std::vector<DeclaredInput> inputs = {Input("id", tensorflow::DT_INT64, {-1})};
  std::set<int64_t> ids;
  const Trials trials = RunTrials(inputs, {}, LooksUp(300, &ids),
                                  {{500}, 2, 3600, {{"id", {300, 1'000'000}}}}, WorkClockOf(true));
  EXPECT_EQ(*ids.rbegin(), 299);
  EXPECT_FALSE(trials.answered.empty());
  EXPECT_EQ(trials.refused.size(), 1u);
}

TEST(GenerateFeeds, AnIdBeyondItsTypeIsTheLargestOfTheType) {
  const std::vector<DeclaredInput> inputs = {Input("id", tensorflow::DT_INT8, {-1})};
  const Tensor made = GenerateFeeds(inputs, 500, 50, {{"id", 1000}}).tensors[0];
  for (int64_t i = 0; i < 500; ++i) EXPECT_GE(made.flat<int8_t>()(i), 0);
  EXPECT_EQ(made.flat<int8_t>()(0), 126);
}

// States of users and shops beside those of items, as in the exporter's columnar_pair.
std::vector<DeclaredInput> StateInputs() {
  std::vector<DeclaredInput> inputs = {Input("item_state/0", tensorflow::DT_FLOAT, {-1, 8}),
                                       Input("row_to_shop", tensorflow::DT_INT64, {-1}),
                                       Input("row_to_user", tensorflow::DT_INT64, {-1}),
                                       Input("shop_state/0", tensorflow::DT_FLOAT, {-1, 8}),
                                       Input("shop_state/row", tensorflow::DT_INT64, {-1}),
                                       Input("user_state/0", tensorflow::DT_FLOAT, {-1, 8}),
                                       Input("user_state/row", tensorflow::DT_INT64, {-1})};
  FindOtherDomains(absl::MakeSpan(inputs));
  return inputs;
}

TEST(RunTrials, StatesAreOfOneRowAndOfSeveralWithIndicesOfThese) {
  const auto refuses = [](const Tensor& index, const Tensor& states, const Tensor& numbers) {
    const auto of = index.flat<int64_t>(), number = numbers.flat<int64_t>();
    bool wrong = number.size() != states.dim_size(0);
    for (int64_t i = 0; i < number.size(); ++i) wrong = wrong || number(i) != i;
    for (int64_t i = 0; i < of.size(); ++i) wrong = wrong || of(i) < 0 || of(i) >= number.size();
    return wrong;
  };
  const GraphRun scores = [&](const Tensors& feeds, Tensors*) {
    return refuses(feeds[1], feeds[3], feeds[4]) || refuses(feeds[2], feeds[5], feeds[6])
               ? absl::InvalidArgumentError("no such row")
               : absl::OkStatus();
  };
  const Trials trials =
      RunTrials(StateInputs(), {}, scores, {{2, 100}, 2, 3600}, WorkClockOf(true));
  std::vector<std::tuple<int64_t, int64_t, int64_t>> ran;
  for (const auto& [feeds, outputs, recorded, seconds, kind] : trials.answered) {
    EXPECT_EQ(feeds.tensors[0].dim_size(0), feeds.rows);
    ran.emplace_back(feeds.rows, feeds.tensors[5].dim_size(0), feeds.tensors[3].dim_size(0));
  }
  const std::vector<std::tuple<int64_t, int64_t, int64_t>> expected = {
      {2, 1, 4}, {2, 4, 1}, {20, 1, 4}, {20, 4, 1}, {100, 1, 4}, {100, 4, 1}};
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(trials.refused.size(), 8u);  // each index and each list of numbers, in both ways
}

TEST(RunTrials, StatesThatAreKnownAreTaken) {
  Tensor user(tensorflow::DT_FLOAT, {2, 8}), wide(tensorflow::DT_FLOAT, {2, 9});
  user.SubSlice(0).unaligned_flat<float>().setConstant(100);
  user.SubSlice(1).unaligned_flat<float>().setConstant(200);
  wide.flat<float>().setConstant(300);
  TrialLimits limits{{2}, 2, 3600};
  limits.known = {{"user_state/0", user}, {"shop_state/0", wide}};
  const Trials trials = RunTrials(StateInputs(), {}, kAnswers, limits, WorkClockOf(true));
  ASSERT_EQ(trials.answered.size(), 4u);
  for (const Trial& trial : trials.answered) {
    const Tensor& users = trial.feeds.tensors[5];
    for (int64_t row = 0; row < users.dim_size(0); ++row) {
      EXPECT_EQ(users.matrix<float>()(row, 7), row % 2 == 0 ? 100 : 200);
    }
    EXPECT_EQ(trial.feeds.tensors[3].dim_size(1), 8);  // of another width, they are not known
  }
}

TEST(RunTrials, WhatTakesOneUserAtATimeIsTriedWithOne) {
  const GraphRun of_one_user = [](const Tensors& feeds, Tensors*) {
    return feeds[5].dim_size(0) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("one user");
  };
  const Trials trials =
      RunTrials(StateInputs(), {}, of_one_user, {{2}, 2, 3600}, WorkClockOf(true));
  ASSERT_EQ(trials.answered.size(), 2u);
  for (const Trial& trial : trials.answered) EXPECT_EQ(trial.feeds.tensors[5].dim_size(0), 1);
}

TEST(RunTrials, AColumnOfNoSizeOrTypeIsNotMade) {
  for (const DeclaredInput& input :
       {Input("huge", tensorflow::DT_FLOAT, {-1, int64_t{1} << 40, int64_t{1} << 40}),
        Input("wide", tensorflow::DT_FLOAT, {-1, 1'000'000'000}),
        Input("untyped", tensorflow::DT_INVALID, {-1})}) {
    const std::vector<DeclaredInput> inputs = {input};
    const Trials trials = RunTrials(inputs, {}, kAnswers, {{2}, 1, 3600}, WorkClockOf(true));
    EXPECT_TRUE(trials.answered.empty());
    EXPECT_EQ(trials.why_none, "no values can be made for input \"" + input.alias + "\"");
  }
}

TEST(RunTrials, SaysWhyThereIsNone) {
  const GraphRun fails = [](const Tensors&, Tensors*) {
    return absl::InvalidArgumentError("it is no tf.Example");
  };
  const Trials trials = RunTrials(Inputs(), {}, fails, {{2}, 2, 3600}, WorkClockOf(true));
  EXPECT_TRUE(trials.answered.empty());
  EXPECT_EQ(trials.why_none, "it is no tf.Example");
}

TEST(RunTrials, MoreRowsAreLeftOutWhereTheyWouldTakeTooLong) {
  double now = 0;
  const GraphRun slow = [&now](const Tensors& feeds, Tensors*) {
    now += static_cast<double>(feeds[1].dim_size(0)) / 1000;
    return absl::OkStatus();
  };
  const Trials trials =
      RunTrials(Inputs(), {}, slow, {{1, 2, 100'000}, 2, 100}, [&now] { return now; });
  ASSERT_FALSE(trials.answered.empty());
  EXPECT_EQ(trials.answered.back().feeds.rows, 20);
  EXPECT_TRUE(trials.lacked_time);
}

TEST(RunTrials, OneRunThatTakesAllTheTimeIsTheOnlyOne) {
  double now = 0;
  int runs = 0;
  const std::vector<TrialFeeds> recorded = {GenerateFeeds(Inputs(), 5, 50)};
  for (const bool answers : {true, false}) {
    const GraphRun slow = [&](const Tensors&, Tensors*) {
      now += 30;
      ++runs;
      return answers ? absl::OkStatus() : absl::InvalidArgumentError("no such row");
    };
    const Trials trials =
        RunTrials(Inputs(), recorded, slow, {{1, 2, 100}, 2, 1}, [&now] { return now; });
    EXPECT_TRUE(trials.answered.empty());
    EXPECT_EQ(trials.why_none, answers ? "a run of 20 rows takes 30 s" : "no such row");
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace colcast::engine
