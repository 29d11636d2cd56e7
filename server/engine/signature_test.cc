#include "server/engine/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/program/programs.h"
#include "server/engine/testing.h"
#include "server/wire/testing.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A signature with score = 10 * user + item and echo = item.
class SignatureRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto user = ops::Placeholder(scope.WithOpName("user"), tensorflow::DT_FLOAT);
    const auto item = ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_FLOAT);
    const auto tens = ops::Multiply(scope, user, 10.0f);
    ops::Add(scope.WithOpName("score"), tens, item);
    ops::Identity(scope.WithOpName("echo"), item);
    session_ = SessionOf(scope);
    for (const char* name : {"user", "item"}) (*signature_.mutable_inputs())[name] = Info(name);
    for (const char* name : {"score", "echo"}) (*signature_.mutable_outputs())[name] = Info(name);
  }

  absl::Status Run(const std::string& message) {
    auto runner = Signature::Create(signature_, session_.get(), {});
    EXPECT_TRUE(runner.ok()) << runner.status();
    RunResult result;
    const Programs programs("scores", **runner, Programs::Others());
    const SentPlan sent(programs, message);
    const absl::Status status =
        sent.status.ok() ? programs.Run(sent.plan->batch, &result) : sent.status;
    outputs_.clear();
    for (size_t i = 0; i < result.tensors.size(); ++i) {
      outputs_[std::string(result.aliases[i])] = ElementsOf(result.tensors[i]);
    }
    expansion_ = sent.plan->expansion;
    return status;
  }

  tensorflow::SignatureDef signature_;
  std::unique_ptr<tensorflow::Session> session_;
  std::map<std::string, std::vector<float>> outputs_;
  ExpansionStats expansion_;
};

std::string Input(const std::string& name, const std::vector<float>& values) {
  return FloatInput(name, {values.size()}, values);
}

std::string Filter(const std::string& name) { return BytesField(3, name); }

TEST_F(SignatureRunTest, AOneRowInputIsRepeated) {
  ASSERT_TRUE(Run(Input("user", {2}) + Input("item", {1, 2, 3})).ok());
  EXPECT_THAT(outputs_, ElementsAre(Pair("echo", ElementsAre(1, 2, 3)),
                                    Pair("score", ElementsAre(21, 22, 23))));
  EXPECT_EQ(expansion_.rows, 3);
  EXPECT_EQ(expansion_.columns_sent_once, 1);
}

TEST_F(SignatureRunTest, DuplicateAndUnknownOutputsAreRefused) {
  const std::string inputs = Input("user", {2}) + Input("item", {1});
  const absl::Status unknown = Run(inputs + Filter("scores"));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("not found in signature: scores"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("{echo, score}"));
  const absl::Status twice = Run(inputs + Filter("score") + Filter("score"));
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("duplicate output tensor alias: score"));
}

TEST_F(SignatureRunTest, ANonDenseOutputCannotBeReturned) {
  (*signature_.mutable_outputs())["score"].mutable_coo_sparse();
  const absl::Status status = Run(Input("user", {2}) + Input("item", {1}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"score\""));
}

TEST_F(SignatureRunTest, CreateNamesTheNonDenseInput) {
  (*signature_.mutable_inputs())["user"].mutable_coo_sparse();
  const auto made = Signature::Create(signature_, session_.get(), Options());
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("input \"user\" as a sparse tensor (coo_sparse)"));
}

TEST_F(SignatureRunTest, ErrorsNameTheInputWithAnInvalidLength) {
  for (const char* const name : {"list", "list/length"}) {
    (*signature_.mutable_inputs())[name] = Info(name);
  }
  (*signature_.mutable_inputs())["list/length"].set_dtype(tensorflow::DT_INT64);
  RowRecord lists;
  lists.lists = {"list"};
  const auto receive = [&](const RowRecord& record, const std::string& message) {
    const auto signature = Signature::Create(signature_, session_.get(), Options(), record);
    const SentRequest sent(message);
    ReceivedRequest received;
    return (*signature)->Receive(sent.request, &received);
  };
  const std::string wrong = Int64Input("list/length", {2, -5});
  EXPECT_TRUE(receive(lists, Int64Input("list/length", {0, 3})).ok());
  EXPECT_EQ(receive(lists, wrong).message(),
            "input \"list/length\": row 1 has the length -5, expected 0 or more");
  const std::string list = FloatInput("list", {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(receive(lists, list + Int64Input("list/length", {0, 3})).ok());
  EXPECT_EQ(receive(lists, Int64Input("list/length", {3, int64_t{1} << 40}) + list).message(),
            "input \"list/length\": row 1 has the length 1099511627776, expected at most 3, the "
            "width of \"list\"");
  EXPECT_TRUE(receive(RowRecord(), wrong).ok());                  // no list is recorded
  EXPECT_TRUE(receive(lists, Int64Input("unknown", {-5})).ok());  // Plan() refuses it
  const std::string one_row = VarintField(1, DT_INT64) + BytesField(2, BytesField(2, "\x08\x01"));
  const std::string in_int64_val = one_row + VarintField(10, static_cast<uint64_t>(-1));
  EXPECT_EQ(
      receive(lists, BytesField(2, BytesField(1, "list/length") + BytesField(2, in_int64_val)))
          .message(),
      "input \"list/length\": row 0 has the length -1, expected 0 or more");
}

// Inputs a and b with their lengths, and c, whose lengths are floats.
SignatureInputs Inputs() {
  tensorflow::SignatureDef signature;
  for (const char* const name : {"a", "a/length", "b", "b/length", "c", "c/length"}) {
    tensorflow::TensorInfo& info = (*signature.mutable_inputs())[name];
    info.set_name(std::string(name) + ":0");
    const bool is_length = std::string(name).find("/length") != std::string::npos && name[0] != 'c';
    info.set_dtype(is_length ? tensorflow::DT_INT64 : tensorflow::DT_FLOAT);
    info.mutable_tensor_shape()->add_dim()->set_size(-1);
  }
  return *SignatureInputs::Create(signature);
}

TEST(ListColumnsTest, OnlyRecordedListsHaveLengths) {
  RowRecord record;
  record.lists = {"a", "c", "unknown"};
  const ListColumns lists(Inputs(), record);
  EXPECT_EQ(lists.LengthsOf(0), 1);
  EXPECT_EQ(lists.LengthsOf(2), -1);  // b is not a recorded list
  EXPECT_EQ(lists.LengthsOf(4), -1);  // c/length holds floats
  EXPECT_EQ(ListColumns().LengthsOf(0), -1);
}

TEST(ListColumnsTest, OnlyRecordedListsWithLengthsHaveOwnLengths) {
  RowRecord record;
  record.lists = {"a", "c"};
  record.own_length = {"a", "b", "c"};
  const ListColumns lists(Inputs(), record);
  EXPECT_THAT(lists.own_lengths(), ElementsAre(1));
}

}  // namespace
}  // namespace colcast::engine
