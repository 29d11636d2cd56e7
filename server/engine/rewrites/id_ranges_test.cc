#include "server/engine/rewrites/id_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::Pair;

// A user's id is looked up in a variable and, modulo some number, in a constant; an item's in the
// variable alone. Rows are repeated as `row_to_user` says; `price` is no id.
TEST(ReadIdRanges, AreTheTablesBehindEachInput) {
  const auto scope = tensorflow::Scope::NewRootScope();
  tensorflow::SignatureDef declared;
  const auto input = [&](const char* name) {
    (*declared.mutable_inputs())[name].set_name(std::string(name) + ":0");
    return ops::Placeholder(scope.WithOpName(name), tensorflow::DT_INT64);
  };
  const auto user = input("user"), item = input("item"), row_to_user = input("row_to_user");
  const auto big = ops::VarHandleOp(scope, tensorflow::DT_FLOAT, {1'000'000, 8});
  const auto read = ops::ReadVariableOp(scope, big, tensorflow::DT_FLOAT);
  const auto small = ops::Const(scope, 0.5f, {300, 8});
  const auto users = ops::GatherV2(scope, user, row_to_user, 0);
  ops::ResourceGather(scope, big, users, tensorflow::DT_FLOAT);
  ops::GatherV2(scope, small, ops::FloorMod(scope, users, int64_t{300}), 0);
  ops::GatherV2(scope, ops::Identity(scope, read), ops::Add(scope, item, int64_t{1}), 0);
  ops::Cast(scope, input("price"), tensorflow::DT_FLOAT);
  tensorflow::GraphDef graph;
  TF_CHECK_OK(scope.ToGraphDef(&graph));
  EXPECT_THAT(ReadIdRanges(graph, declared),
              ElementsAre(Pair("item", FieldsAre(1'000'000, 1'000'000)),
                          Pair("user", FieldsAre(300, 1'000'000))));
}

}  // namespace
}  // namespace colcast::engine
