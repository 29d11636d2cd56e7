#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/input.h"
#include "server/engine/testing.h"
#include "server/states/keys.h"
#include "tensorflow/core/platform/tstring.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using ::testing::ElementsAre;

// Rows 1 and 3 of four.
class PickedInputTest : public ::testing::Test {
 protected:
  Tensor Pick(const std::string& message, const TensorShape& shape) {
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request_).ok());
    Input column(request_.columns()[0]);
    EXPECT_TRUE(column.Check().ok());
    states::RowKeys row_keys;
    const states::KeyHash hash;
    row_keys.Begin(4, hash);
    EXPECT_TRUE(row_keys.AddRows(column.column(), column.count(), nullptr).ok());
    const PickedInput picked(column, row_keys, 0, rows_, places_);
    EXPECT_EQ(picked.dims()[0], 2);
    Tensor tensor;
    EXPECT_TRUE(picked.BuildTensor(shape, &tensor).ok());
    return tensor;
  }
  const std::vector<int64_t> rows_ = {1, 3};
  const std::vector<int32_t> places_ = {-1, 0, -1, 1};
  DecodedRequest request_;
};

TEST_F(PickedInputTest, NumbersAreThoseOfTheRows) {
  const Tensor tensor =
      Pick(FloatInput("x", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), TensorShape({2, 2}));
  const auto values = tensor.flat<float>();
  EXPECT_THAT(std::vector<float>(values.data(), values.data() + 4), ElementsAre(3, 4, 7, 8));
}

TEST_F(PickedInputTest, SoAreTexts) {
  const std::string shape = BytesField(2, BytesField(2, VarintField(1, 4)));
  std::string values;
  for (const char* const text : {"a", "b", "c", "d"}) values += BytesField(8, text);
  const std::string tensor = VarintField(1, DT_STRING) + shape + values;
  const Tensor picked =
      Pick(BytesField(2, BytesField(1, "x") + BytesField(2, tensor)), TensorShape({2}));
  EXPECT_EQ(picked.flat<tensorflow::tstring>()(0), "b");
  EXPECT_EQ(picked.flat<tensorflow::tstring>()(1), "d");
}

}  // namespace
}  // namespace colcast::engine
