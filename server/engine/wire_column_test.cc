#include "server/engine/wire_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using testing::ElementsAre;

// Builds the column with this TensorProto into `*out`.
absl::Status Build(const std::string& proto, const TensorShape& target, Tensor* out) {
  const std::string message = BytesField(2, BytesField(1, "x") + BytesField(2, proto));
  DecodedRequest request;
  EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
  WireColumn column(request.column(0));
  if (absl::Status status = column.Check(); !status.ok()) return status;
  return column.BuildTensor(target, out);
}

std::string Proto(DataType dtype, int64_t rows, const std::string& values) {
  return VarintField(1, dtype) + BytesField(2, BytesField(2, VarintField(1, rows))) + values;
}

std::string Ints(const std::vector<uint64_t>& values) {
  return Proto(DT_INT64, values.size(), BytesField(10, Varints(values)));
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return std::vector<T>(flat.data(), flat.data() + flat.size());
}

TEST(WireColumnTest, RepeatsOneRow) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({7}), TensorShape({3}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(7, 7, 7));
}

TEST(WireColumnTest, FillsATensorOfTheSameShapeAgain) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  const void* const memory = tensor.data();
  ASSERT_TRUE(Build(Ints({3, 4}), TensorShape({2}), &tensor).ok());
  EXPECT_EQ(tensor.data(), memory);
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3, 4));
}

TEST(WireColumnTest, LeavesATensorAloneThatOthersShare) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  const Tensor shared = tensor;
  ASSERT_TRUE(Build(Ints({3, 4}), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(shared), ElementsAre(1, 2));
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3, 4));
}

TEST(WireColumnTest, MakesATensorOfAnotherShapeOrDtype) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  ASSERT_TRUE(Build(Ints({3}), TensorShape({1}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3));
  ASSERT_TRUE(Build(Proto(DT_STRING, 1, BytesField(8, "a")), TensorShape({1}), &tensor).ok());
  EXPECT_THAT(Values<tstring>(tensor), ElementsAre("a"));
  ASSERT_TRUE(Build(Proto(DT_STRING, 0, ""), TensorShape({0}), &tensor).ok());
  EXPECT_EQ(tensor.NumElements(), 0);
}

TEST(WireColumnTest, NothingOfTheOldValuesStays) {
  Tensor tensor;
  const std::string two = BytesField(8, std::string(100, 'x')) + BytesField(8, "y");
  ASSERT_TRUE(Build(Proto(DT_STRING, 2, two), TensorShape({2}), &tensor).ok());
  ASSERT_TRUE(Build(Proto(DT_STRING, 2, BytesField(8, "z")), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(Values<tstring>(tensor), ElementsAre("z", "z"));
  ASSERT_TRUE(Build(Proto(DT_STRING, 2, ""), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(Values<tstring>(tensor), ElementsAre("", ""));
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  ASSERT_TRUE(Build(Proto(DT_INT64, 2, ""), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(0, 0));
}

}  // namespace
}  // namespace colcast::engine
