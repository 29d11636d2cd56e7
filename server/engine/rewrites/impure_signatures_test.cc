#include "server/engine/rewrites/impure_signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/io_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/platform/protobuf.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::Output;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

// Signature "score" reads the variable "bias"; others are declared by tests.
class ImpureSignaturesTest : public ::testing::Test {
 protected:
  ImpureSignaturesTest() : scope_(tensorflow::Scope::NewRootScope()) {
    bias_ = ops::VarHandleOp(scope_.WithOpName("handle"), tensorflow::DT_FLOAT, {},
                             ops::VarHandleOp::SharedName("bias"));
    x_ = ops::Placeholder(scope_.WithOpName("x"), tensorflow::DT_FLOAT);
    Declare("score", ops::AddV2(scope_, x_, ops::ReadVariableOp(scope_, bias_, x_.type())));
  }

  void Declare(const std::string& name, const Output& output) {
    (*(*model_.mutable_signature_def())[name].mutable_outputs())["out"].set_name(output.name());
  }

  // An output that waits for an op.
  Output After(const tensorflow::Operation& op) const {
    return ops::Identity(scope_.WithControlDependencies(std::vector<tensorflow::Operation>{op}),
                         x_);
  }

  Impurities Find(const std::vector<std::string>& unserved = {}) {
    TF_CHECK_OK(scope_.ToGraphDef(model_.mutable_graph_def()));
    return FindImpure(model_, unserved);
  }

  std::string WhyNot(const std::string& name) { return Find()[name].why; }

  tensorflow::Scope scope_;
  tensorflow::MetaGraphDef model_;
  Output bias_, x_;
};

TEST_F(ImpureSignaturesTest, ASignatureIsPureIfNothingIsWritten) { EXPECT_THAT(Find(), IsEmpty()); }

TEST_F(ImpureSignaturesTest, AWriterAndAReaderOfOneVariableAreImpure) {
  Declare("set_bias", After(ops::AssignVariableOp(scope_, bias_, x_)));
  Impurities found = Find();
  EXPECT_EQ(found["score"].why, "it reads \"bias\", which signature \"set_bias\" writes");
  EXPECT_FALSE(found["score"].writes);
  EXPECT_EQ(found["set_bias"].why, "it writes \"bias\" (AssignVariableOp)");
  EXPECT_TRUE(found["set_bias"].writes);
  EXPECT_THAT(Find(/*unserved=*/{"set_bias"}), IsEmpty());
}

TEST_F(ImpureSignaturesTest, AReaderOfAnotherVariableIsPure) {
  const auto other = ops::VarHandleOp(scope_.WithOpName("other"), tensorflow::DT_FLOAT, {});
  Declare("count", After(ops::AssignAddVariableOp(scope_, other, x_)));
  EXPECT_THAT(Find(), ElementsAre(Key("count")));
}

TEST_F(ImpureSignaturesTest, TheInitOpMayWriteVariables) {
  Declare("__saved_model_init_op", After(ops::AssignVariableOp(scope_, bias_, x_)));
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(ImpureSignaturesTest, AReaderOfAWrittenReferenceVariableIsImpure) {
  const auto old = ops::Variable(scope_.WithOpName("old"), {}, tensorflow::DT_FLOAT);
  Declare("reads", ops::Identity(scope_, old));
  Declare("writes", ops::Assign(scope_, old, x_));
  EXPECT_EQ(WhyNot("reads"), "it reads \"old\", which signature \"writes\" writes");
}

TEST_F(ImpureSignaturesTest, AReaderOfATableThatAnotherSignatureFillsIsImpure) {
  const auto table = ops::MutableHashTable(scope_.WithOpName("words"), tensorflow::DT_STRING,
                                           tensorflow::DT_FLOAT);
  const auto key = ops::Placeholder(scope_, tensorflow::DT_STRING);
  Declare("looks_up", ops::LookupTableFind(scope_, table, key, 0.0f));
  EXPECT_THAT(Find(), IsEmpty());
  Declare("fills", After(ops::LookupTableInsert(scope_, table, key, x_)));
  EXPECT_EQ(WhyNot("looks_up"), "it reads \"words\", which signature \"fills\" writes");
}

TEST_F(ImpureSignaturesTest, ReadersOfRandomNumbersAndFilesAreImpure) {
  Declare("noise", ops::RandomUniform(scope_.WithOpName("draw"), {2}, tensorflow::DT_FLOAT));
  Declare("file", ops::ReadFile(scope_.WithOpName("words"), "words.txt"));
  Declare("hash", ops::StringToHashBucketFast(scope_, {"a"}, 7));
  Impurities found = Find();
  EXPECT_THAT(found, ElementsAre(Key("file"), Key("noise")));
  EXPECT_EQ(found["noise"].why, "draw (RandomUniform) differs between runs");
  EXPECT_FALSE(found["noise"].writes);
}

TEST_F(ImpureSignaturesTest, AWriteToAFunctionsArgumentIsFound) {
  tensorflow::FunctionDef function;
  ASSERT_TRUE(tensorflow::protobuf::TextFormat::ParseFromString(R"(
    signature {
      name: "add_one"
      input_arg { name: "unused" type: DT_RESOURCE }
      input_arg { name: "counter" type: DT_RESOURCE }
      input_arg { name: "by" type: DT_FLOAT }
      output_arg { name: "out" type: DT_FLOAT }
    }
    node_def { name: "added" op: "AssignAddVariableOp" input: "counter" input: "by" }
    node_def { name: "out" op: "Identity" input: "by" input: "^added" }
    ret { key: "out" value: "out:output:0" }
  )",
                                                                &function));
  const auto counter = ops::VarHandleOp(scope_.WithOpName("counter"), tensorflow::DT_FLOAT, {});
  TF_CHECK_OK(scope_.ToGraphDef(model_.mutable_graph_def()));
  tensorflow::NodeDef call;
  call.set_name("call");
  call.set_op("StatefulPartitionedCall");
  for (const std::string& input : {bias_.name(), counter.resource.name(), x_.name()})
    call.add_input(input);
  (*call.mutable_attr())["f"].mutable_func()->set_name("add_one");
  *model_.mutable_graph_def()->mutable_library()->add_function() = function;
  *model_.mutable_graph_def()->add_node() = call;
  (*(*model_.mutable_signature_def())["counts"].mutable_outputs())["out"].set_name("call:0");
  Impurities found = FindImpure(model_, {});
  EXPECT_THAT(found, ElementsAre(Key("counts")));
  EXPECT_THAT(found["counts"].why, HasSubstr("writes \"counter\""));
}

}  // namespace
}  // namespace colcast::engine
