#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
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

  // A session of the graph, in which `places` gathers are rewritten.
  std::unique_ptr<tensorflow::Session> Rewritten(int places,
                                                 const std::set<std::string>& feeds = {}) const {
    return SessionOf(RewrittenBy(GatherKernelRowsOnce, GraphOf(scope_), places, feeds));
  }

  static std::vector<float> Rows(tensorflow::Session* session) {
    const Tensor rows = *Fetch(session, {}, "rows:0");
    return ElementsOf(rows);
  }

  tensorflow::Scope scope_;
  Output handle_, kernel_;
};

TEST_F(KernelRowsTest, RowsAreGatheredAgainAfterAnUpdate) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {2, 0}, 0);
  const auto session = Rewritten(1);
  EXPECT_THAT(Rows(session.get()), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(Rows(session.get()), ElementsAre(4, 5, 0, 1));
  TF_CHECK_OK(session->Run({}, {}, {"update"}, nullptr));
  EXPECT_THAT(Rows(session.get()), ElementsAre(14, 15, 10, 11));
  TF_CHECK_OK(session->Run({}, {}, {"add"}, nullptr));
  EXPECT_THAT(Rows(session.get()), ElementsAre(114, 115, 110, 111));
}

TEST_F(KernelRowsTest, ColumnsCanBeGathered) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {1}, 1);
  EXPECT_THAT(Rows(Rewritten(1).get()), ElementsAre(1, 3, 5));
}

TEST_F(KernelRowsTest, FedPositionsAndComputedKernelsAreNotRewritten) {
  const auto fed = ops::Placeholder(scope_.WithOpName("fed"), tensorflow::DT_INT32);
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, fed, 0);
  ops::GatherV2(scope_.WithOpName("other"), ops::Neg(scope_, kernel_), {1}, 0);
  Rewritten(0, {"fed"});
}

TEST_F(KernelRowsTest, PositionsOutOfRangeGiveTensorFlowsError) {
  ops::GatherV2(scope_.WithOpName("rows"), kernel_, {3}, 0);
  const absl::Status status = Fetch(Rewritten(1).get(), {}, "rows:0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("3 is not in [0, 3)"));
}

}  // namespace
}  // namespace colcast::engine
