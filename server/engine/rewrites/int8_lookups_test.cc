#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "server/engine/rewrites/lookup_testing.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/table_readers.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Int8LookupsTest = LookupGraphTest;

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

TEST_F(Int8LookupsTest, OtherVariablesStayAsTheyAre) {
  GraphDef graph = Original();
  EXPECT_EQ(*GroupLookups({}, &graph), 2);
  EXPECT_EQ(*UseInt8Tables({"another"}, {}, &graph), 0);
  EXPECT_EQ(*UseInt8Tables({"table"}, {"handle"}, &graph), 0);
}

}  // namespace
}  // namespace colcast::engine
