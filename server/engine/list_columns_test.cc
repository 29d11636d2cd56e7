#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "server/engine/signature.h"
#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

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

class ListColumnsTest : public ::testing::Test {
 protected:
  const Input* Lengths(const std::vector<int64_t>& values) {
    const std::string& message = messages_.emplace_back(Int64Input("a/length", values));
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &requests_.emplace_back()).ok());
    Input& column = columns_.emplace_back(requests_.back().columns()[0]);
    EXPECT_TRUE(column.Check().ok());
    return &column;
  }
  std::deque<std::string> messages_;
  std::deque<DecodedRequest> requests_;
  std::deque<Input> columns_;
};

TEST_F(ListColumnsTest, OnlyRecordedListsHaveLengths) {
  RowRecord record;
  record.lists = {"a", "c", "unknown"};
  const ListColumns lists(Inputs(), record);
  EXPECT_EQ(lists.LengthsOf(0), 1);
  EXPECT_EQ(lists.LengthsOf(2), -1);  // b is not a recorded list
  EXPECT_EQ(lists.LengthsOf(4), -1);  // c/length holds floats
  EXPECT_EQ(ListColumns().LengthsOf(0), -1);
}

TEST_F(ListColumnsTest, OnlyListsWithLengthsHaveOwnOnes) {
  RowRecord record;
  record.lists = {"a", "c"};
  record.own_length = {"a", "b", "c"};
  const ListColumns lists(Inputs(), record);
  EXPECT_THAT(lists.own_lengths(), ElementsAre(1));
}

TEST_F(ListColumnsTest, LengthsAreRead) {
  std::vector<int64_t> lengths;
  ASSERT_TRUE(ReadLengths(*Lengths({4, 0, 7}), &lengths));
  EXPECT_THAT(lengths, ElementsAre(4, 0, 7));
}

}  // namespace
}  // namespace colcast::engine
