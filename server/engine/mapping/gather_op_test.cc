#include "server/engine/mapping/gather_op.h"

#include <gmock/gmock.h>

#include "server/engine/mapping/testing.h"
#include "server/tables/overlay.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using GatherOpTest = MappingTest;

TEST_F(GatherOpTest, GivesRowsInTheOrderOfTheirIds) {
  const auto session = Restored();
  EXPECT_THAT(*Run(session.get(), {9, 0, 9}), ElementsAre(27, 28, 29, 0, 1, 2, 27, 28, 29));
  EXPECT_THAT(*Run(session.get(), {}), IsEmpty());
}

TEST_F(GatherOpTest, ErrorsNameAnIdOutOfRange) {
  const auto session = Restored();
  for (const int64_t id : {int64_t{-1}, kRows}) {
    const absl::Status status = Run(session.get(), {1, id}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("indices[1] = ", id, " is not in [0, 10)\n\t [[{{node ")));
  }
}

// Compares TensorFlow's op with ours for the same node.
class GatherTwinsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GatherTwinsTest, GivesTheRowsOfTensorFlowsOp) {
  namespace ops = tensorflow::ops;
  const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto table =
      ops::Const(scope, tensorflow::Input::Initializer(AsTensor<float>(values, {4, 3, 2})));
  const auto ids = ops::Const(scope, AsTensor<int32_t>({3, 0, 1, 1}, {2, 2}));
  const std::string op = GetParam();
  if (op == "GatherV2") {
    ops::GatherV2(scope.WithOpName("rows"), table, ids, 0);
  } else {
    ops::Gather(scope.WithOpName("rows"), table, ids);
  }
  tensorflow::GraphDef graph = GraphOf(scope);
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() != "rows") continue;
    MakeMappedGather(&node);
    EXPECT_TRUE(IsMappedGather(node));
  }
  ExpectSameBits(SessionOf(graph).get(), SessionOf(scope).get(), {}, "rows:0");
}

INSTANTIATE_TEST_SUITE_P(Ops, GatherTwinsTest, ::testing::Values("Gather", "GatherV2"));

}  // namespace
}  // namespace colcast::engine
