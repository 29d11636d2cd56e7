#include "server/engine/rewrites/rewrites.h"

#include <gtest/gtest.h>

#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;

// A product with some of these outputs: "score", the sum of each row; "best", the column of each
// row's greatest value; and "item", an input.
tensorflow::MetaGraphDef Model(const std::vector<std::string>& outputs, float weight = 1) {
  const auto scope = tensorflow::Scope::NewRootScope();
  const auto x = Fed(scope.WithOpName("x"), tensorflow::DT_FLOAT, {-1, 32});
  ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_INT64);
  const auto kernel = ops::Const(scope.WithOpName("kernel"), weight, {32, 16});
  const auto product = ops::MatMul(scope, x, kernel);
  ops::Sum(scope.WithOpName("score"), product, 1);
  ops::ArgMax(scope.WithOpName("best"), product, 1);
  tensorflow::MetaGraphDef model;
  TF_CHECK_OK(scope.ToGraphDef(model.mutable_graph_def()));
  tensorflow::SignatureDef& declared = (*model.mutable_signature_def())["ranks"];
  (*declared.mutable_inputs())["x"].set_name("x:0");
  (*declared.mutable_inputs())["item"].set_name("item:0");
  for (const std::string& output : outputs) {
    auto& info = (*declared.mutable_outputs())[output];
    info.set_name(output + ":0");
    info.set_dtype(output == "score" ? tensorflow::DT_FLOAT : tensorflow::DT_INT64);
  }
  return model;
}

absl::StatusOr<std::string> Rewritten(const tensorflow::MetaGraphDef& model) {
  tensorflow::GraphDef graph = model.graph_def();
  return RewriteGraph({{"bfloat16 products", " products in bfloat16", UseBfloat16Products}},
                      model.signature_def().at("ranks"), &graph);
}

TEST(RewriteGraph, SaysHowManyPlacesItChanged) {
  EXPECT_EQ(*Rewritten(Model({"score"})), "1 products in bfloat16");
}

TEST(RewriteGraph, AnIntegerThatDependsOnNoRoundedValueIsAllowed) {
  EXPECT_EQ(*Rewritten(Model({"score", "item"})), "1 products in bfloat16");
}

TEST(RewriteGraph, AnIntegerThatDependsOnRoundedValuesIsRefused) {
  const absl::Status status = Rewritten(Model({"score", "best"})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "output \"best\" is of int64, which must not change, but depends on rounded values");
}

TEST(RewriteGraph, AGraphThatMayChangeStateIsNotRewritten) {
  tensorflow::MetaGraphDef model = Model({"score"});
  auto* const assign = model.mutable_graph_def()->add_node();
  assign->set_name("assign");
  assign->set_op("AssignVariableOp");
  EXPECT_EQ(*Rewritten(model), "");
}

std::string Fingerprint(const std::vector<std::string>& outputs, float weight = 1) {
  const tensorflow::MetaGraphDef model = Model(outputs, weight);
  return GraphFingerprint(model, {{"ranks", model.graph_def()}});
}

TEST(GraphFingerprint, DependsOnGraphsAndSignatures) {
  const std::string one = Fingerprint({"score"});
  EXPECT_EQ(one.size(), 16);
  EXPECT_EQ(Fingerprint({"score"}), one);
  EXPECT_NE(Fingerprint({"score", "item"}), one);
  EXPECT_NE(Fingerprint({"score"}, /*weight=*/2), one);
}

}  // namespace
}  // namespace colcast::engine
