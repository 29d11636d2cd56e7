#include "server/engine/rewrites/kernel_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::GraphDef;
using tensorflow::Output;
using tensorflow::Tensor;
using ::testing::ElementsAre;

// The node "rows" gathers from a variable [3, 2] with the values 0 to 5.
class KernelRowsTest : public ::testing::Test {
 protected:
  KernelRowsTest() : scope_(tensorflow::Scope::NewRootScope()) {
    handle_ = ops::VarHandleOp(scope_.WithOpName("kernel"), tensorflow::DT_FLOAT, {3, 2});
    const auto range = ops::Range(scope_, 0.0f, 6.0f, 1.0f);
    const auto value = ops::Reshape(scope_, range, {3, 2});
    ops::AssignVariableOp(scope_.WithOpName("init"), handle_, value);
    ops::AssignVariableOp(scope_.WithOpName("update"), handle_, ops::AddV2(scope_, value, 10.0f));
    ops::AssignAddVariableOp(scope_.WithOpName("add"), handle_, ops::Fill(scope_, {3, 2}, 100.0f));
    kernel_ = ops::ReadVariableOp(scope_, handle_, tensorflow::DT_FLOAT);
  }

  static int Rewrite(GraphDef* graph, const std::set<std::string>& feeds = {}) {
    const absl::StatusOr<int> places = GatherKernelRowsOnce(feeds, graph);
    return places.ok() ? *places : -1;
  }

  static std::vector<float> Rows(tensorflow::Session* session) {
    const Tensor rows = *Fetch(session, {}, "rows:0");
    const auto flat = rows.flat<float>();
    return {flat.data(), flat.data() + flat.size()};
  }

  tensorflow::Scope scope_;
  Output handle_, kernel_;
};

TEST_F(KernelRowsTest, AreThoseOfTheVariable) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {2, 0}, 0);
  GraphDef graph = GraphOf(scope_);
  ASSERT_EQ(Rewrite(&graph), 1);
  const auto session = SessionOf(graph);
  EXPECT_THAT(Rows(session.get()), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(Rows(session.get()), ElementsAre(4, 5, 0, 1));
}

TEST_F(KernelRowsTest, FollowAnUpdateOfTheVariable) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {2, 0}, 0);
  GraphDef graph = GraphOf(scope_);
  ASSERT_EQ(Rewrite(&graph), 1);
  const auto session = SessionOf(graph);
  Rows(session.get());
  TF_CHECK_OK(session->Run({}, {}, {"update"}, nullptr));
  EXPECT_THAT(Rows(session.get()), ElementsAre(14, 15, 10, 11));
  TF_CHECK_OK(session->Run({}, {}, {"add"}, nullptr));
  EXPECT_THAT(Rows(session.get()), ElementsAre(114, 115, 110, 111));
}

TEST_F(KernelRowsTest, AreColumnsOfATransposedOne) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {1}, 1);
  GraphDef graph = GraphOf(scope_);
  ASSERT_EQ(Rewrite(&graph), 1);
  EXPECT_THAT(Rows(SessionOf(graph).get()), ElementsAre(1, 3, 5));
}

TEST_F(KernelRowsTest, StayTensorFlowsWherePositionsAreFedOrTheKernelIsNoVariable) {
  const auto fed = ops::Placeholder(scope_.WithOpName("fed"), tensorflow::DT_INT32);
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, fed, 0);
  ops::GatherV2(scope_.WithOpName("other"), ops::Neg(scope_, kernel_), {1}, 0);
  GraphDef graph = GraphOf(scope_);
  EXPECT_EQ(Rewrite(&graph, {"fed"}), 0);
}

TEST_F(KernelRowsTest, OutsideTheKernelAreRefusedAsByTensorFlow) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {3}, 0);
  GraphDef graph = GraphOf(scope_);
  ASSERT_EQ(Rewrite(&graph), 1);
  const absl::Status status = Fetch(SessionOf(graph).get(), {}, "rows:0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("3 is not in [0, 3)"));
}

}  // namespace
}  // namespace colcast::engine
