#include "server/engine/lookup_errors.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/signature.h"
#include "server/engine/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;

// Looks up `movie` and `shop` in tables of 5 rows, and the square of `shop` in one of 7 rows.
class LookupErrorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto movie = ops::Placeholder(scope.WithOpName("in_movie"), tensorflow::DT_INT64);
    const auto shop = ops::Placeholder(scope.WithOpName("in_shop"), tensorflow::DT_INT32);
    const auto table = [&](const std::string& name, int64_t rows) {
      Tensor values(tensorflow::DT_FLOAT, tensorflow::TensorShape({rows}));
      values.flat<float>().setZero();
      return tensorflow::Output(ops::Identity(
          scope, ops::Const(scope.WithOpName(name), tensorflow::Input::Initializer(values))));
    };
    const auto look_up = [&](const std::string& name, const tensorflow::Output& from,
                             const tensorflow::Output& ids) {
      return tensorflow::Output(ops::GatherV2(scope.WithOpName(name), from, ids, 0));
    };
    const auto narrow = ops::Cast(scope, movie, tensorflow::DT_INT32);
    const std::vector<tensorflow::Output> parts = {
        look_up("of_movie", table("movies", 5), ops::Reshape(scope, narrow, {-1})),
        look_up("of_shop", table("shops", 5), shop),
        look_up("of_square", table("squares", 7), ops::Multiply(scope, shop, shop))};
    ops::AddN(scope.WithOpName("score"), parts);
    TF_CHECK_OK(scope.ToGraphDef(&graph_));
    tensorflow::SessionOptions options;
    options.config.mutable_experimental()->set_executor_type("SINGLE_THREADED_EXECUTOR");
    session_.reset(tensorflow::NewSession(options));
    TF_CHECK_OK(session_->Create(graph_));
    tensorflow::SignatureDef declared;
    const auto declare = [](const std::string& node, tensorflow::DataType dtype,
                            tensorflow::TensorInfo* info) {
      *info = Info(node);
      info->set_dtype(dtype);
    };
    declare("in_movie", tensorflow::DT_INT64, &(*declared.mutable_inputs())["movie"]);
    declare("in_shop", tensorflow::DT_INT32, &(*declared.mutable_inputs())["shop"]);
    declare("score", tensorflow::DT_FLOAT, &(*declared.mutable_outputs())["score"]);
    signature_ = *Signature::Create(declared, session_.get(), {});
    signature_->set_lookup_errors(LookupErrors(graph_, signature_->inputs()));
  }

  std::string ErrorOf(int64_t movie, int32_t shop) const {
    RunResult result;
    const absl::Status status = signature_->RunFeeds(
        {AsTensor<int64_t>({movie}, {1}), AsTensor<int32_t>({shop}, {1})}, {0}, &result);
    return std::string(status.message());
  }

  tensorflow::GraphDef graph_;
  std::unique_ptr<tensorflow::Session> session_;
  std::unique_ptr<Signature> signature_;
};

TEST_F(LookupErrorsTest, ErrorsNameTheInputTableAndOpOfAWrongIndex) {
  EXPECT_EQ(ErrorOf(5, 1),
            "indices[0] = 5 is not in [0, 5): table \"movies\", input \"movie\" "
            "[[{{node of_movie}}]]");
  EXPECT_EQ(ErrorOf(1, -1),
            "indices[0] = -1 is not in [0, 5): table \"shops\", input \"shop\" "
            "[[{{node of_shop}}]]");
}

TEST_F(LookupErrorsTest, ErrorsOnComputedIndicesNameNoInput) {
  EXPECT_EQ(ErrorOf(1, 3),
            "indices[0] = 9 is not in [0, 7): table \"squares\" [[{{node of_square}}]]");
}

TEST_F(LookupErrorsTest, OnlyTheOpThatTheMessageNamesIsExplained) {
  const std::string said = "indices[0] = 9 is not in [0, 5)";
  const LookupErrors errors(graph_, signature_->inputs());
  const auto explained = [&](const std::string& node) {
    const absl::Status status = absl::InvalidArgumentError(said + "\n\t [[{{node " + node + "}}]]");
    return std::string(
        errors.Explained(status, {AsTensor<int64_t>({9}, {1}), AsTensor<int32_t>({9}, {1})})
            .message());
  };
  EXPECT_EQ(explained("of_shop"), said + ": table \"shops\", input \"shop\" [[{{node of_shop}}]]");
  EXPECT_EQ(explained("other"), said + "\n\t [[{{node other}}]]");
}

TEST_F(LookupErrorsTest, OtherErrorsAreUnchanged) {
  const LookupErrors none;
  for (const char* message :
       {"indices[0] = 5 is not in [0, 5)", "no such op", "indices[0] = x is not in [0, 5)",
        "indices[0] = 5 is not in [0, 5) [[{{node a}}]]", "indices[", ""}) {
    const absl::Status status = absl::InvalidArgumentError(message);
    EXPECT_EQ(none.Explained(status, {}), status);
  }
}

}  // namespace
}  // namespace colcast::engine
