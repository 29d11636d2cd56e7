#include "server/engine/rewrites/int8_lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/rewrites/float32_tables.h"
#include "server/engine/rewrites/grouped_lookups.h"
#include "server/engine/rewrites/int8_tables.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::GraphDef;
using tensorflow::Input;
using tensorflow::Scope;
using tensorflow::SignatureDef;
using tensorflow::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Feeds = std::vector<std::pair<std::string, Tensor>>;

constexpr int kRows = 20'000;
constexpr int kWidth = 24;

// joined = the row of variable "table" that `id` names and the sum of those that `list` names.
class Int8LookupsTest : public ::testing::Test {
 protected:
  Int8LookupsTest() : scope_(Scope::NewRootScope()) {
    const auto one = ops::Placeholder::Shape(tensorflow::PartialTensorShape({-1}));
    const auto many = ops::Placeholder::Shape(tensorflow::PartialTensorShape({-1, -1}));
    const auto id = ops::Placeholder(scope_.WithOpName("id"), tensorflow::DT_INT64, one);
    const auto list = ops::Placeholder(scope_.WithOpName("list"), tensorflow::DT_INT64, many);
    table_ = ops::VarHandleOp(scope_.WithOpName("handle"), tensorflow::DT_FLOAT, {kRows, kWidth},
                              ops::VarHandleOp::SharedName("table"));
    const auto values = ops::Placeholder(scope_.WithOpName("values"), tensorflow::DT_FLOAT);
    ops::AssignVariableOp(scope_.WithOpName("assign"), table_, values);
    ops::AssignAddVariableOp(scope_.WithOpName("add"), table_, values);
    ops::ResourceScatterAdd(scope_.WithOpName("scatter"), table_, 1, Input(Row(5)));
    const auto gathered =
        ops::ResourceGather(scope_.WithOpName("lookup_of_id"), table_, id, tensorflow::DT_FLOAT);
    const auto read = ops::ReadVariableOp(scope_.WithOpName("read"), table_, tensorflow::DT_FLOAT);
    const auto summed =
        ops::Sum(scope_, ops::GatherV2(scope_.WithOpName("lookup_of_list"), read, list, 0), 1);
    ops::Concat(scope_.WithOpName("joined"), std::vector<tensorflow::Output>{gathered, summed}, 1);
  }

  static Tensor Row(float value) {
    Tensor row(tensorflow::DT_FLOAT, {kWidth});
    row.flat<float>().setConstant(value);
    return row;
  }

  static Tensor Values(float factor) {
    Tensor values(tensorflow::DT_FLOAT, {kRows, kWidth});
    auto flat = values.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      flat(i) = factor * std::sin(static_cast<float>(i % 7919));
    }
    return values;
  }

  static Tensor Ids(tensorflow::TensorShape shape, const std::vector<int64_t>& values) {
    Tensor ids(tensorflow::DT_INT64, shape);
    std::copy(values.begin(), values.end(), ids.flat<int64_t>().data());
    return ids;
  }

  static Feeds Requests(const std::vector<int64_t>& ids, int64_t list) {
    const auto rows = static_cast<int64_t>(ids.size());
    std::vector<int64_t> values;
    for (int64_t i = 0; i < rows * list; ++i) values.push_back(i * 7 % kRows);
    return {{"id", Ids({rows}, ids)}, {"list", Ids({rows, list}, values)}};
  }

  GraphDef Original() {
    GraphDef graph;
    TF_CHECK_OK(scope_.ToGraphDef(&graph));
    return graph;
  }

  GraphDef InInt8() {
    GraphDef graph = Original();
    EXPECT_EQ(*GroupLookups({}, &graph), 2);
    EXPECT_EQ(*UseInt8Tables({"table"}, {}, &graph), 1);
    return graph;
  }

  static std::unique_ptr<tensorflow::Session> Start(const GraphDef& graph) {
    std::unique_ptr<tensorflow::Session> session(
        tensorflow::NewSession(tensorflow::SessionOptions()));
    TF_CHECK_OK(session->Create(graph));
    TF_CHECK_OK(session->Run({{"values", Values(1)}}, {}, {"assign"}, nullptr));
    return session;
  }

  static absl::StatusOr<Tensor> Fetch(tensorflow::Session* session, const Feeds& feeds,
                                      const std::string& fetch = "joined:0") {
    std::vector<Tensor> outputs;
    absl::Status status = session->Run(feeds, {fetch}, {}, &outputs);
    if (!status.ok()) return status;
    return outputs[0];
  }

  static void ExpectClose(const Tensor& actual, const Tensor& expected, float difference) {
    ASSERT_EQ(actual.shape(), expected.shape());
    for (int64_t i = 0; i < expected.NumElements(); ++i) {
      ASSERT_NEAR(actual.flat<float>()(i), expected.flat<float>()(i), difference) << i;
    }
  }

  static SignatureDef Fetching(const std::string& output) {
    SignatureDef declared;
    (*declared.mutable_outputs())["output"].set_name(output + ":0");
    return declared;
  }

  // The first value that row 1 of the table has.
  static float FirstOfRow1(tensorflow::Session* session) {
    return Fetch(session, Requests({1}, 0))->flat<float>()(0);
  }

  Scope scope_;
  tensorflow::Output table_;
};

TEST_F(Int8LookupsTest, AreCloseToTensorFlows) {
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

TEST_F(Int8LookupsTest, IdsThatAreNoRowsAreTensorFlowsErrors) {
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

TEST_F(Int8LookupsTest, AVariableThatASignatureMayChangeIsNotReadInInt8) {
  for (const char* const change : {"assign", "add", "scatter"}) {
    GraphDef graph = Original();
    tensorflow::NodeDef* const changed = graph.add_node();
    changed->set_name("changed");
    changed->set_op("Identity");
    changed->add_input("id");
    changed->add_input(std::string("^") + change);
    (*changed->mutable_attr())["T"].set_type(tensorflow::DT_INT64);
    EXPECT_THAT(TablesOnlyLookedUp(graph, {Fetching("joined"), Fetching("changed")}),
                ElementsAre());
  }
}

TEST_F(Int8LookupsTest, WithoutFloat32TheTableAnswersAndWhatReadsTheVariableFails) {
  const auto session = Start(InInt8());
  const Feeds feeds = Requests({5, 19'999}, 3);
  const auto before = Fetch(session.get(), feeds);
  const auto notes = DropUnread({{"scores", {{}, {"table"}}}, {"others", {{"other"}, {}}}},
                                {"table"}, session.get());
  EXPECT_THAT(notes, ElementsAre("1 table in int8 alone: 0.00192 GB given back"));
  const auto after = Fetch(session.get(), feeds);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->tensor_data() == before->tensor_data());
  EXPECT_FALSE(Fetch(session.get(), {}, "read:0").ok());
  EXPECT_FALSE(session->Run({{"values", Values(1)}}, {}, {"add"}, nullptr).ok());
}

TEST_F(Int8LookupsTest, ATableThatHasNotRunIsRoundedBeforeItsFloat32Goes) {
  const auto session = Start(InInt8());
  DropUnread({{"scores", {{}, {"table"}}}}, {}, session.get());
  EXPECT_NEAR(FirstOfRow1(session.get()), std::sin(24.0f), 1.0 / 251);
}

TEST_F(Int8LookupsTest, WhatAnotherSignatureReadsStays) {
  const auto session = Start(InInt8());
  const auto notes = DropUnread({{"scores", {{}, {"table"}}}, {"others", {{"table"}, {}}}},
                                {"table"}, session.get());
  EXPECT_THAT(notes,
              ElementsAre("1 table stays in float32, too: signature \"others\" reads float32"));
  EXPECT_TRUE(Fetch(session.get(), {}, "read:0").ok());
}

TEST_F(Int8LookupsTest, AVariableThatNoSignatureReadsIsDropped) {
  const auto session = Start(Original());
  EXPECT_THAT(DropUnread({{"others", {{"other"}, {}}}}, VariablesOf(Original()), session.get()),
              ElementsAre("1 variable that no signature reads: 0.00192 GB given back"));
  EXPECT_FALSE(Fetch(session.get(), {}, "read:0").ok());
}

TEST_F(Int8LookupsTest, WhatWaitsForAReadOfTheTableWaitsForTheLookup) {
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
  EXPECT_THAT(TablesOnlyLookedUp(graph, {Fetching("result")}), ElementsAre("table"));
  EXPECT_EQ(*GroupLookups({}, &graph), 2);
  EXPECT_EQ(*UseInt8Tables({"table"}, {}, &graph), 1);
  EXPECT_THAT(ReadBy(graph, Fetching("result")).float32, ElementsAre());
  const auto session = Start(graph);
  EXPECT_TRUE(Fetch(session.get(), Requests({1}, 2), "result:0").ok());
}

TEST_F(Int8LookupsTest, ACheckBeforeTheTableIsReadStays) {
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

TEST_F(Int8LookupsTest, ATableOfAFormThatIsNotServedIsFreed) {
  const auto session = Start(InInt8());
  const tensorflow::DeviceMgr* devices = nullptr;
  TF_CHECK_OK(session->LocalDeviceManager(&devices));
  auto* const resources = devices->ListDevices().front()->resource_manager();
  const auto table = [&] {
    return std::weak_ptr(*(*Int8Tables::In(resources))->Find("localhost", "table", resources));
  };
  const auto served = table();
  DropUnread({{"scores", {{"table"}, {"table"}}}}, {"table"}, session.get());
  EXPECT_FALSE(served.expired());
  DropUnread({{"scores", {{"table"}, {}}}}, {"table"}, session.get());
  EXPECT_TRUE(served.expired());
}

TEST_F(Int8LookupsTest, OtherVariablesStayAsTheyAre) {
  GraphDef graph = Original();
  EXPECT_EQ(*GroupLookups({}, &graph), 2);
  EXPECT_EQ(*UseInt8Tables({"another"}, {}, &graph), 0);
  EXPECT_EQ(*UseInt8Tables({"table"}, {"handle"}, &graph), 0);
}

TEST_F(Int8LookupsTest, ReadersAreFound) {
  const SignatureDef joined = Fetching("joined"), read = Fetching("read");
  const TablesRead before = ReadBy(Original(), joined), after = ReadBy(InInt8(), joined);
  EXPECT_THAT(before.float32, ElementsAre("table"));
  EXPECT_THAT(before.int8, ElementsAre());
  EXPECT_THAT(after.float32, ElementsAre());
  EXPECT_THAT(after.int8, ElementsAre("table"));
  EXPECT_THAT(TablesOnlyLookedUp(Original(), {joined}), ElementsAre("table"));
}

TEST_F(Int8LookupsTest, WhatAFunctionHoldsIsNotDropped) {
  GraphDef graph = Original();
  tensorflow::NodeDef* const held = graph.mutable_library()->add_function()->add_node_def();
  held->set_name("handle");
  held->set_op("VarHandleOp");
  (*held->mutable_attr())["shared_name"].set_s("of_the_function_alone");
  EXPECT_THAT(VariablesOf(graph), ElementsAre("table"));
  (*held->mutable_attr())["shared_name"].set_s("table");
  EXPECT_THAT(VariablesOf(graph), ElementsAre());
}

TEST_F(Int8LookupsTest, WhatIsReadInAnotherWayIsNotOnlyLookedUp) {
  const auto read = ops::ReadVariableOp(scope_, table_, tensorflow::DT_FLOAT);
  ops::Sum(scope_.WithOpName("total"), read, 0);
  EXPECT_THAT(TablesOnlyLookedUp(Original(), {Fetching("joined"), Fetching("total")}),
              ElementsAre());
}

}  // namespace
}  // namespace colcast::engine
