#include "server/engine/decoded_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/tensor_testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::ElementsAre;

TEST(DecodedColumnTest, ItsTensorIsFedAsItIs) {
  const Tensor tensor = AsTensor<float>({1, 2, 3, 4}, {2, 2});
  const DecodedColumn column("x", tensor);
  Tensor fed;
  ASSERT_TRUE(column.BuildTensor(TensorShape({2, 2}), &fed).ok());
  EXPECT_EQ(fed.data(), tensor.data());
  EXPECT_THAT(column.dims(), ElementsAre(2, 2));
  EXPECT_EQ(column.dtype(), tensorflow::DT_FLOAT);
}

TEST(DecodedColumnTest, ItsValuesAreReadAsThoseOnTheWire) {
  const DecodedColumn column("x", AsTensor<tstring>({"a", "bc"}, {2}));
  Tensor copy(tensorflow::DT_STRING, TensorShape({2}));
  ASSERT_TRUE(column.Decode(&copy, 0).ok());
  EXPECT_EQ(copy.flat<tstring>()(1), "bc");
  EXPECT_EQ(column.count(), 2);
}

TEST(DecodedColumnTest, OneRowIsRepeated) {
  const DecodedColumn column("x", AsTensor<float>({7}, {1}));
  Tensor fed;
  ASSERT_TRUE(column.BuildTensor(TensorShape({3}), &fed).ok());
  EXPECT_EQ(fed.flat<float>()(2), 7);
}

}  // namespace
}  // namespace colcast::engine
