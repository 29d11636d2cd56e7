#include "server/engine/program/length_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/batch/sliced_request.h"
#include "server/engine/batch/testing.h"
#include "server/engine/program/testing.h"
#include "server/engine/signature.h"

namespace colcast::engine {
namespace {

TEST(LengthGroupsTest, TooManyDifferentLengthsAreNotGrouped) {
  std::vector<int64_t> lengths(1000);
  std::iota(lengths.begin(), lengths.end(), 0);
  const SentInput sent(Int64Input("a/length", lengths));
  const std::vector<const Input*> columns = {&sent.input};
  Readers readers;
  readers.each_alone = true;
  LengthGroups groups;
  EXPECT_FALSE(groups.Set({0}, columns, 1000, readers));
  EXPECT_EQ(groups.count(), 1);
}

struct Request {
  std::vector<std::vector<float>> histories;  // one per user
  std::vector<std::vector<float>> genres;     // one per item
  std::vector<std::vector<float>> clicks;     // one per candidate
  std::vector<int64_t> user_of;               // per candidate; empty for one user
  std::vector<int64_t> item_of;               // per candidate; empty if it has its own item
};

std::string ListOf(const std::string& name, const std::vector<std::vector<float>>& rows,
                   size_t wider) {
  size_t width = wider;
  for (const std::vector<float>& row : rows) width = std::max(width, row.size());
  std::vector<float> values;
  std::vector<int64_t> lengths;
  for (std::vector<float> row : rows) {
    lengths.push_back(static_cast<int64_t>(row.size()));
    row.resize(width);
    values.insert(values.end(), row.begin(), row.end());
  }
  return FloatInput(name, {rows.size(), width}, values) + Int64Input(name + "/length", lengths);
}

// A model as the exporter writes it. Its scores depend on the longest lists: score = 100 *
// mean(history) + 10 * mean(genres) + mean(clicks), where a mean is the sum divided by 1 + the
// longest list of the run.
class ListModel final : public ExportedModel {
 public:
  struct Settings {
    int64_t state_bytes = 1 << 20;
    bool wide_user_state = false;  // the user's state is as wide as the history
  };

  explicit ListModel(const Settings& settings) : wide_(settings.wide_user_state) {
    BuildSession();
    DeclareAll();
    RecordedSignatures recorded;
    recorded.columns["item"] = {"genres", "genres/length"};
    recorded.many_users_per_run = true;
    const std::map<std::string, std::vector<std::string>> own = {
        {"columnar", {"clicks", "genres", "history"}},
        {"columnar_late", {"clicks", "genres"}},
        {"columnar_user", {"history"}},
        {"columnar_item", {"genres"}},
        {"columnar_pair", {"clicks"}}};
    for (const auto& [name, declared] : declared_) {
      RowRecord& row = recorded.rows[name];
      row.independent = true;
      row.lists = {"clicks", "genres", "history"};
      row.own_length = own.at(name);
    }
    Make(recorded, settings.state_bytes);
  }

 private:
  void BuildSession() {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto input = [&](const std::string& name, tensorflow::DataType dtype) {
      return ops::Placeholder(scope.WithOpName(name), dtype);
    };
    const auto longest = [&](const std::string& name) {
      const auto lengths = input(name + "/length", tensorflow::DT_INT64);
      return ops::Add(scope, ops::Cast(scope, ops::Max(scope, lengths, 0), tensorflow::DT_FLOAT),
                      1.0f);
    };
    const auto history = input("history", tensorflow::DT_FLOAT);
    const auto genres = input("genres", tensorflow::DT_FLOAT);
    const auto clicks = input("clicks", tensorflow::DT_FLOAT);
    const auto over_history = ops::Div(scope, history, longest("history"));
    const auto of_user =
        ops::Multiply(scope.WithOpName("of_user"), ops::Sum(scope, over_history, 1), 100.0f);
    ops::Multiply(scope.WithOpName("wide_of_user"), over_history, 100.0f);
    const auto of_item =
        ops::Multiply(scope.WithOpName("of_item"),
                      ops::Div(scope, ops::Sum(scope, genres, 1), longest("genres")), 10.0f);
    const auto of_clicks = ops::Div(scope, ops::Sum(scope, clicks, 1), longest("clicks"));
    ops::Add(scope.WithOpName("score"), ops::Add(scope, of_user, of_item), of_clicks);
    const auto user_state = input("user_state", tensorflow::DT_FLOAT);
    const auto index = input("row_to_user", tensorflow::DT_INT64);
    const auto item_state = input("item_state", tensorflow::DT_FLOAT);
    const auto gathered = ops::GatherV2(scope, user_state, index, 0);
    const auto rest = ops::Add(scope, item_state, of_clicks);
    ops::Add(scope.WithOpName("pair_score"), gathered, rest);
    ops::Add(scope.WithOpName("wide_pair_score"), ops::Sum(scope, gathered, 1), rest);
    SetGraph(scope);
  }

  void AddList(const std::string& signature, const std::string& name, int64_t rows = -1) {
    auto& inputs = *declared_[signature].mutable_inputs();
    inputs[name] = Info(name, rows, 2);
    inputs[name + "/length"] = Info(name + "/length", rows);
  }

  void DeclareAll() {
    for (const std::string signature : {"columnar", "columnar_late"}) {
      AddList(signature, "history", signature == "columnar" ? -1 : 1);
      AddList(signature, "genres");
      AddList(signature, "clicks");
      (*declared_[signature].mutable_outputs())["score"] = Info("score");
    }
    const int user_rank = wide_ ? 2 : 1;
    AddList("columnar_user", "history");
    (*declared_["columnar_user"].mutable_outputs())["user_state/0"] =
        Info(wide_ ? "wide_of_user" : "of_user", -1, user_rank);
    AddList("columnar_item", "genres");
    (*declared_["columnar_item"].mutable_outputs())["item_state/0"] = Info("of_item");
    AddList("columnar_pair", "clicks");
    auto& inputs = *declared_["columnar_pair"].mutable_inputs();
    inputs["user_state/0"] = Info("user_state", -1, user_rank);
    inputs["row_to_user"] = Info("row_to_user");
    inputs["item_state/0"] = Info("item_state");
    (*declared_["columnar_pair"].mutable_outputs())["score"] =
        Info(wide_ ? "wide_pair_score" : "pair_score");
  }

  const bool wide_;
};

float SumOver(const std::vector<float>& list, size_t longest) {
  float sum = 0;
  for (const float value : list) sum += value;
  return sum / (1 + static_cast<float>(longest));
}

// The expected scores of a request: each user's candidates, or all candidates, run together.
std::vector<float> Expected(const Request& request, bool pads_together) {
  const size_t candidates = request.clicks.size();
  const auto user_of = [&](size_t i) { return request.user_of.empty() ? 0 : request.user_of[i]; };
  const auto item_of = [&](size_t i) {
    return request.item_of.empty() ? static_cast<int64_t>(i) : request.item_of[i];
  };
  std::vector<float> scores;
  for (size_t i = 0; i < candidates; ++i) {
    size_t history = 0, genres = 0, clicks = 0;
    for (size_t k = 0; k < candidates; ++k) {
      if (!pads_together && user_of(k) != user_of(i)) continue;
      history = std::max(history, request.histories[user_of(k)].size());
      genres = std::max(genres, request.genres[item_of(k)].size());
      clicks = std::max(clicks, request.clicks[k].size());
    }
    scores.push_back(100 * SumOver(request.histories[user_of(i)], history) +
                     10 * SumOver(request.genres[item_of(i)], genres) +
                     SumOver(request.clicks[i], clicks));
  }
  return scores;
}

class ListModelTest : public ::testing::Test {
 protected:
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  // Draws few distinct lists, so that states are found again in requests with other lists.
  std::vector<std::vector<float>> Lists(int rows, int longest) {
    std::vector<std::vector<float>> lists(rows);
    for (std::vector<float>& list : lists) {
      list.resize(Below(longest + 1));
      for (float& value : list) value = static_cast<float>(1 + Below(2));
    }
    return lists;
  }

  Request Draw(bool users, bool items) {
    Request request;
    const int candidates = 1 + Below(6);
    const int num_users = users ? 1 + Below(3) : 1;
    request.histories = Lists(num_users, 4);
    request.clicks = Lists(candidates, 2);
    if (users) {
      for (int u = 0; u < candidates; ++u) {
        request.user_of.push_back(u < num_users ? u : Below(num_users));
      }
      request.histories.resize(std::min(num_users, candidates));
    }
    const int num_items = items ? 1 + Below(4) : candidates;
    request.genres = Lists(num_items, 3);
    for (int i = 0; items && i < candidates; ++i) request.item_of.push_back(Below(num_items));
    return request;
  }

  std::string MessageOf(const Request& request) {
    std::string message = ListOf("history", request.histories, Below(6)) +
                          ListOf("genres", request.genres, Below(5)) +
                          ListOf("clicks", request.clicks, Below(4));
    if (!request.user_of.empty()) message += Int64Input("row_to_user", request.user_of);
    if (!request.item_of.empty()) message += Int64Input("row_to_item", request.item_of);
    return message;
  }

  void Plan(const ListModel& model, const Request& request) {
    planned_.emplace_back(model.programs(), MessageOf(request), &rules_);
    ASSERT_TRUE(planned_.back().status.ok()) << planned_.back().status;
  }

  static std::vector<float> Scores(const ListModel& model, const Batch& batch) {
    RunResult result;
    const absl::Status status = model.programs().Run(batch, &result);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return {};
    return ElementsOf(result.tensors[0]);
  }

  // Runs the planned requests together and checks their scores. Returns how many ran alone.
  int RunTogether(const ListModel& model, const std::vector<Request>& requests) {
    std::vector<BatchMember> members;
    const int alone = colcast::engine::RunTogether(model.programs(), planned_, &members);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(members[i].status.ok()) << members[i].status.message;
      if (!members[i].status.ok()) return alone;
      ExpectNear(FirstOutput(*members[i].outputs), Expected(requests[i], false));
    }
    return alone;
  }

  static void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3) << i;
  }

  std::mt19937 random_{7};
  const BatchRules rules_;
  std::deque<SentPlan> planned_;
};

TEST_F(ListModelTest, StatesAreSpecificToTheLongestList) {
  for (const bool wide : {false, true}) {
    ListModel::Settings settings;
    settings.wide_user_state = wide;
    const ListModel model(settings);
    for (int round = 0; round < 600; ++round) {
      const Request request = Draw(round % 3 == 1, round % 5 == 1);
      Plan(model, request);
      Batch& batch = planned_.back().plan->batch;
      batch.pads_together = round % 7 == 1;
      ExpectNear(Scores(model, batch), Expected(request, batch.pads_together));
      ASSERT_FALSE(HasFailure()) << round << ", wide " << wide;
      planned_.clear();
    }
    EXPECT_GT(model.Ran("stages", "ok"), 300);
    EXPECT_EQ(model.Ran("stages", "failed"), 0);
  }
}

TEST_F(ListModelTest, StagesJoinRequestsOfDifferentLengths) {
  for (const int64_t state_bytes : {0, 1 << 20}) {
    ListModel::Settings settings;
    settings.state_bytes = state_bytes;
    const ListModel model(settings);
    for (int round = 0; round < 300; ++round) {
      std::vector<Request> requests(2 + Below(5));
      for (Request& request : requests) {
        request = Draw(Below(4) == 0, false);
        for (std::vector<float>& clicks : request.clicks) clicks.resize(2, 1);
        Plan(model, request);
      }
      EXPECT_EQ(RunTogether(model, requests), 0);
      ASSERT_FALSE(HasFailure()) << round;
      planned_.clear();
    }
    EXPECT_EQ(model.Ran("stages", "ok"), 300);
  }
}

TEST_F(ListModelTest, RequestsOfOneLengthAreJoinedIfAStateIsAsWideAsItsList) {
  ListModel::Settings settings;
  settings.wide_user_state = true;
  const ListModel model(settings);
  int alone = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Request> requests(6);
    for (Request& request : requests) {
      request = Draw(false, false);
      Plan(model, request);
    }
    alone += RunTogether(model, requests);
    ASSERT_FALSE(HasFailure()) << round;
    planned_.clear();
  }
  EXPECT_LT(alone, 200 * 6);
  EXPECT_EQ(model.Ran("stages", "failed"), 0);
}

TEST_F(ListModelTest, SlicesKeepTheRequestsLongestList) {
  for (const int64_t state_bytes : {0, 1 << 20}) {
    ListModel::Settings settings;
    settings.state_bytes = state_bytes;
    const ListModel model(settings);
    int split = 0;
    for (int round = 0; round < 300; ++round) {
      const Request request = Draw(round % 2 == 1, false);
      Plan(model, request);
      const std::unique_ptr<Slices> slices = SliceRequest(*planned_.back().plan);
      if (slices != nullptr) {
        ++split;
        std::vector<int> taken;
        while (slices->rows_left() > 0) taken.push_back(slices->Take(1 + Below(2)));
        for (const int slice : taken) slices->Run(slice);
        std::unique_ptr<Outputs> outputs;
        const Status status = slices->Join(&outputs);
        ASSERT_TRUE(status.ok()) << status.message;
        ExpectNear(FirstOutput(*outputs), Expected(request, false));
      }
      ASSERT_FALSE(HasFailure()) << round;
      planned_.clear();
    }
    EXPECT_GT(split, 150);
  }
}

}  // namespace
}  // namespace colcast::engine
