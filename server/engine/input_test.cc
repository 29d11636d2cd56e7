#include "server/engine/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/testing.h"
#include "server/wire/column.h"
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
  Input column(request.columns()[0]);
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

TEST(InputTest, RepeatsOneRow) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({7}), TensorShape({3}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(7, 7, 7));
}

TEST(InputTest, FillsATensorOfTheSameShapeAgain) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  const void* const memory = tensor.data();
  ASSERT_TRUE(Build(Ints({3, 4}), TensorShape({2}), &tensor).ok());
  EXPECT_EQ(tensor.data(), memory);
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3, 4));
}

TEST(InputTest, LeavesATensorAloneThatOthersShare) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  const Tensor shared = tensor;
  ASSERT_TRUE(Build(Ints({3, 4}), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(shared), ElementsAre(1, 2));
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3, 4));
}

TEST(InputTest, MakesATensorOfAnotherShapeOrDtype) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  ASSERT_TRUE(Build(Ints({3}), TensorShape({1}), &tensor).ok());
  EXPECT_THAT(Values<int64_t>(tensor), ElementsAre(3));
  ASSERT_TRUE(Build(Proto(DT_STRING, 1, BytesField(8, "a")), TensorShape({1}), &tensor).ok());
  EXPECT_THAT(Values<tstring>(tensor), ElementsAre("a"));
  ASSERT_TRUE(Build(Proto(DT_STRING, 0, ""), TensorShape({0}), &tensor).ok());
  EXPECT_EQ(tensor.NumElements(), 0);
}

TEST(InputTest, ReplacesAllOldValues) {
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

TEST(InputTest, TheQuickCheckAgreesWithTheFullOne) {
  for (int dtype = 0; dtype <= DT_UINT2 + 1; ++dtype) {
    for (int64_t rows = 0; rows < 4; ++rows) {
      for (int values = 0; values < 5; ++values) {
        std::string varints, strings;
        for (int i = 0; i < values; ++i) {
          strings += BytesField(8, "a");
          for (const int field : {7, 10, 11, 13, 16, 17}) varints += VarintField(field, 1);
        }
        const std::string raw(8 * values, '\1');
        for (const std::string& fields :
             {BytesField(4, raw), BytesField(4, raw.substr(0, 4 * values)), BytesField(5, raw),
              BytesField(6, raw), BytesField(9, raw), BytesField(12, raw), varints, strings}) {
          const std::string proto = Proto(static_cast<DataType>(dtype), rows, fields);
          const std::string message = BytesField(2, BytesField(1, "x") + BytesField(2, proto));
          DecodedRequest request;
          ASSERT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
          int64_t count = 0;
          Status expected = ElementCount(request.columns()[0], &count);
          if (expected.ok()) expected = CheckValues(request.columns()[0], count);
          Input column(request.columns()[0]);
          EXPECT_EQ(column.Check().ok(), expected.ok()) << dtype << " " << rows << " " << values;
          if (expected.ok()) {
            EXPECT_EQ(column.count(), count);
          }
        }
      }
    }
  }
}

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::ElementsAre;

TEST(TensorInputTest, ItsTensorIsFedAsItIs) {
  const Tensor tensor = AsTensor<float>({1, 2, 3, 4}, {2, 2});
  const TensorInput column("x", tensor);
  Tensor fed;
  ASSERT_TRUE(column.BuildTensor(TensorShape({2, 2}), &fed).ok());
  EXPECT_EQ(fed.data(), tensor.data());
  EXPECT_THAT(column.dims(), ElementsAre(2, 2));
  EXPECT_EQ(column.dtype(), tensorflow::DT_FLOAT);
}

TEST(TensorInputTest, ItsValuesAreReadAsThoseOnTheWire) {
  const TensorInput column("x", AsTensor<tstring>({"a", "bc"}, {2}));
  Tensor copy(tensorflow::DT_STRING, TensorShape({2}));
  ASSERT_TRUE(column.Decode(&copy, 0).ok());
  EXPECT_EQ(copy.flat<tstring>()(1), "bc");
  EXPECT_EQ(column.count(), 2);
}

TEST(TensorInputTest, OneRowIsRepeated) {
  const TensorInput column("x", AsTensor<float>({7}, {1}));
  Tensor fed;
  ASSERT_TRUE(column.BuildTensor(TensorShape({3}), &fed).ok());
  EXPECT_EQ(fed.flat<float>()(2), 7);
}

}  // namespace
}  // namespace colcast::engine
