#include "server/engine/rewrites/rewritten_signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/rewrites/packed_products.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The rewritten form of a signature of a product, with these of its tensors as outputs: its sums
// "score" and greatest columns "best", and the numbers "item" that came with it.
RewrittenSignature Rewritten(const std::vector<std::string>& outputs) {
  const auto scope = tensorflow::Scope::NewRootScope();
  const auto x =
      ops::Placeholder(scope.WithOpName("x"), tensorflow::DT_FLOAT,
                       ops::Placeholder::Shape(tensorflow::PartialTensorShape({-1, 32})));
  ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_INT64);
  const auto kernel = ops::Const(scope, 1.0f, {32, 16});
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
  const std::vector<Rewrite> rewrites = {
      {"bfloat16 products", " products in bfloat16", false, 1, UseBfloat16Products}};
  const auto rewritten = AddRewrittenSignatures(
      rewrites, [](const std::string&) { return WantedForms(); }, &model);
  EXPECT_THAT(rewritten.at("ranks").forms, SizeIs(1));
  return rewritten.at("ranks").forms[0];
}

TEST(RewrittenSignatures, SayWhatTheyLose) {
  const RewrittenSignature form = Rewritten({"score"});
  EXPECT_EQ(form.says, "1 products in bfloat16");
  EXPECT_FALSE(form.exact);
  EXPECT_THAT(form.loses, ElementsAre("bfloat16 products"));
}

TEST(RewrittenSignatures, OfFloatsALittleMayBeLost) {
  EXPECT_THAT(Rewritten({"score"}).why_not, IsEmpty());
}

TEST(RewrittenSignatures, WhatDependsOnNothingRoundedStaysAsItIs) {
  EXPECT_THAT(Rewritten({"score", "item"}).why_not, IsEmpty());
}

TEST(RewrittenSignatures, OfWholeNumbersNothingMayBeLost) {
  EXPECT_EQ(Rewritten({"score", "best"}).why_not,
            "output \"best\" depends on it, and is of int64, which has to be the same");
}

}  // namespace
}  // namespace colcast::engine
