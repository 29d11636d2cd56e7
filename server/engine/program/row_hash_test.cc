#include "server/engine/program/row_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"

namespace colcast::engine {
namespace {

// A signature with lists, their lengths, and a column without rows.
class RowHashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    tensorflow::SignatureDef declared;
    const auto declare = [](const std::string& node, int rank, tensorflow::TensorInfo* info) {
      info->set_name(node + ":0");
      info->set_dtype(tensorflow::DT_INT64);
      for (int i = 0; i < rank; ++i) info->mutable_tensor_shape()->add_dim()->set_size(-1);
    };
    for (const char* node : {"ids", "lengths", "shared"}) {
      tensorflow::ops::Placeholder(scope.WithOpName(node), tensorflow::DT_INT64);
    }
    auto& inputs = *declared.mutable_inputs();
    declare("ids", 2, &inputs["ids"]);
    declare("lengths", 1, &inputs["ids/length"]);
    declare("shared", 1, &inputs["shared"]);
    declare("lengths", 1, &(*declared.mutable_outputs())["out"]);
    tensorflow::GraphDef graph;
    TF_CHECK_OK(scope.ToGraphDef(&graph));
    session_.reset(tensorflow::NewSession(tensorflow::SessionOptions()));
    TF_CHECK_OK(session_->Create(graph));
    RowRecord record;
    record.lists = {"ids"};
    signature_ = *Signature::Create(declared, session_.get(), {}, record);
    columns_.assign(3, nullptr);
  }

  // Sends a column's values, `width` per row; 0 means no second dimension.
  void Send(const std::string& name, const std::vector<uint64_t>& values, size_t width = 0) {
    const size_t rows = width > 0 ? values.size() / width : values.size();
    std::string shape = BytesField(2, VarintField(1, rows));
    if (width > 0) shape += BytesField(2, VarintField(1, width));
    SendTensor(name, BytesField(2, shape) + BytesField(10, Varints(values)));
  }

  void SendTensor(const std::string& name, const std::string& values) {
    const std::string proto = VarintField(1, DT_INT64) + values;
    messages_.push_back(BytesField(2, BytesField(1, name) + BytesField(2, proto)));
    EXPECT_TRUE(DecodePredictRequest(Bytes(messages_.back()), &requests_.emplace_back()).ok());
    Input& column = sent_.emplace_back(requests_.back().columns()[0]);
    EXPECT_TRUE(column.Check().ok());
    columns_[signature_->inputs().Find(name)] = &column;
  }

  std::vector<states::Key> Keys(int64_t rows, bool padding_counts) {
    std::vector<states::Key> keys;
    const std::vector<int> inputs = {0, 1, 2};
    const HashedColumns hashed = {*signature_, inputs, columns_, rows, padding_counts};
    EXPECT_TRUE(row_hash_.MakeKeys(hashed, hash_, &keys));
    return keys;
  }

  const states::KeyHash hash_;
  std::unique_ptr<tensorflow::Session> session_;
  std::unique_ptr<Signature> signature_;
  std::deque<std::string> messages_;
  std::deque<DecodedRequest> requests_;
  std::deque<Input> sent_;
  std::vector<const Input*> columns_;
  RowHash row_hash_;
};

TEST_F(RowHashTest, EqualRowsHaveEqualKeysWhateverStandsBesideThem) {
  Send("ids", {1, 2, 3, 4, 1, 2}, 2);
  Send("ids/length", {2, 2, 2});
  const std::vector<states::Key> three = Keys(3, true);
  EXPECT_TRUE(three[0] == three[2]);
  EXPECT_FALSE(three[0] == three[1]);
  Send("ids", {3, 4}, 2);
  Send("ids/length", {2});
  EXPECT_TRUE(Keys(1, true)[0] == three[1]);
}

TEST_F(RowHashTest, WhatAllRowsShareIsInEveryKey) {
  Send("ids", {1, 2}, 1);
  const std::vector<states::Key> without = Keys(2, true);
  Send("shared", {7});
  const std::vector<states::Key> with = Keys(2, true);
  EXPECT_FALSE(without[0] == with[0]);
  EXPECT_FALSE(without[1] == with[1]);
  EXPECT_THAT(row_hash_.places, ::testing::ElementsAre(0, -1, -1));
}

TEST_F(RowHashTest, PaddingIsLeftOutUnlessItCounts) {
  Send("ids", {1, 5, 1, 6}, 2);
  Send("ids/length", {1, 1});
  const std::vector<states::Key> without = Keys(2, false), with = Keys(2, true);
  EXPECT_TRUE(without[0] == without[1]);
  EXPECT_FALSE(with[0] == with[1]);
}

TEST_F(RowHashTest, EveryValueCountsWhereLengthsDoNotFit) {
  Send("ids", {1, 5, 1, 6}, 2);
  Send("ids/length", {3, 1});
  const std::vector<states::Key> before = Keys(2, false);
  Send("ids", {1, 5, 1, 7}, 2);
  const std::vector<states::Key> after = Keys(2, false);
  EXPECT_TRUE(before[0] == after[0]);
  EXPECT_FALSE(before[1] == after[1]);
}

TEST_F(RowHashTest, AColumnHasRowsIfItHasAsManyAsThere) {
  Send("ids", {1, 2, 3}, 1);
  const int ids = signature_->inputs().Find("ids");
  const DeclaredInput& declared = signature_->inputs().inputs()[ids];
  EXPECT_TRUE(HasRows(declared, columns_[ids], 3));
  EXPECT_FALSE(HasRows(declared, columns_[ids], 1));
  EXPECT_FALSE(HasRows(declared, nullptr, 3));
}

}  // namespace
}  // namespace colcast::engine
