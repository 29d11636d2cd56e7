#include "server/engine/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/testing.h"
#include "server/states/keys.h"
#include "server/wire/column.h"
#include "server/wire/testing.h"
#include "tensorflow/core/platform/tstring.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using testing::ElementsAre;

// Builds the column with this TensorProto into `*out`.
absl::Status Build(const std::string& proto, const TensorShape& target, Tensor* out) {
  const SentRequest sent(BytesField(2, BytesField(1, "x") + BytesField(2, proto)));
  Input column(sent.request.columns()[0]);
  if (absl::Status status = column.Check(); !status.ok()) return status;
  return column.BuildTensor(target, out);
}

std::string Proto(DataType dtype, int64_t rows, const std::string& values) {
  return VarintField(1, dtype) + BytesField(2, BytesField(2, VarintField(1, rows))) + values;
}

std::string Ints(const std::vector<uint64_t>& values) {
  return Proto(DT_INT64, values.size(), BytesField(10, Varints(values)));
}

TEST(InputTest, ATensorIsReusedIfItFitsAndIsNotShared) {
  Tensor tensor;
  ASSERT_TRUE(Build(Ints({7}), TensorShape({3}), &tensor).ok());
  EXPECT_THAT(ElementsOf<int64_t>(tensor), ElementsAre(7, 7, 7));  // one row is repeated
  ASSERT_TRUE(Build(Ints({1, 2}), TensorShape({2}), &tensor).ok());
  const void* const memory = tensor.data();
  ASSERT_TRUE(Build(Ints({3, 4}), TensorShape({2}), &tensor).ok());
  EXPECT_EQ(tensor.data(), memory);
  const Tensor shared = tensor;
  ASSERT_TRUE(Build(Ints({5, 6}), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(ElementsOf<int64_t>(shared), ElementsAre(3, 4));
  EXPECT_THAT(ElementsOf<int64_t>(tensor), ElementsAre(5, 6));
  ASSERT_TRUE(Build(Proto(DT_INT64, 2, ""), TensorShape({2}), &tensor).ok());
  EXPECT_THAT(ElementsOf<int64_t>(tensor), ElementsAre(0, 0));
}

TEST(InputTest, AReusedStringTensorKeepsNoOldValue) {
  Tensor tensor;
  const std::string two = BytesField(8, std::string(100, 'x')) + BytesField(8, "y");
  for (const auto& [strings, expected] : std::vector<std::pair<std::string, std::string>>{
           {two, "y"}, {BytesField(8, "z"), "z"}, {"", ""}}) {
    ASSERT_TRUE(Build(Proto(DT_STRING, 2, strings), TensorShape({2}), &tensor).ok());
    EXPECT_EQ(tensor.flat<tstring>()(1), expected);
  }
  ASSERT_TRUE(Build(Proto(DT_STRING, 0, ""), TensorShape({0}), &tensor).ok());
  EXPECT_EQ(tensor.NumElements(), 0);
}

TEST(InputTest, TheQuickCheckAgreesWithTheFullCheck) {
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
          const SentRequest sent(BytesField(2, BytesField(1, "x") + BytesField(2, proto)));
          int64_t count = 0;
          Status expected = ElementCount(sent.request.columns()[0], &count);
          if (expected.ok()) expected = CheckValues(sent.request.columns()[0], count);
          Input column(sent.request.columns()[0]);
          EXPECT_EQ(column.Check().ok(), expected.ok()) << dtype << " " << rows << " " << values;
          if (expected.ok()) {
            EXPECT_EQ(column.count(), count);
          }
        }
      }
    }
  }
}

TEST(TensorInputTest, TheTensorIsFedWithoutACopy) {
  const Tensor tensor = AsTensor<float>({1, 2, 3, 4}, {2, 2});
  const TensorInput column("x", tensor);
  Tensor fed;
  ASSERT_TRUE(column.BuildTensor(TensorShape({2, 2}), &fed).ok());
  EXPECT_EQ(fed.data(), tensor.data());
  EXPECT_THAT(column.dims(), ElementsAre(2, 2));
  EXPECT_EQ(column.dtype(), tensorflow::DT_FLOAT);
}

TEST(TensorInputTest, ValuesCanBeDecoded) {
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

// Rows 1 and 3 of four.
Tensor Pick(const std::string& message, const TensorShape& shape) {
  const SentInput sent(message);
  states::RowKeys row_keys;
  const states::KeyHash hash;
  row_keys.Begin(4, hash);
  EXPECT_TRUE(row_keys.AddRows(sent.input.column(), sent.input.count(), nullptr).ok());
  const std::vector<int64_t> rows = {1, 3};
  const std::vector<int32_t> places = {-1, 0, -1, 1};
  const PickedInput picked(sent.input, row_keys, 0, rows, places);
  EXPECT_EQ(picked.dims()[0], 2);
  Tensor tensor;
  EXPECT_TRUE(picked.BuildTensor(shape, &tensor).ok());
  return tensor;
}

TEST(PickedInputTest, NumbersOfThePickedRowsAreCopied) {
  EXPECT_THAT(
      ElementsOf(Pick(FloatInput("x", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), TensorShape({2, 2}))),
      ElementsAre(3, 4, 7, 8));
}

TEST(PickedInputTest, StringsOfThePickedRowsAreCopied) {
  const std::string shape = BytesField(2, BytesField(2, VarintField(1, 4)));
  std::string values;
  for (const char* const text : {"a", "b", "c", "d"}) values += BytesField(8, text);
  const std::string tensor = VarintField(1, DT_STRING) + shape + values;
  const Tensor picked =
      Pick(BytesField(2, BytesField(1, "x") + BytesField(2, tensor)), TensorShape({2}));
  EXPECT_THAT(ElementsOf<tstring>(picked), ElementsAre("b", "d"));
}

}  // namespace
}  // namespace colcast::engine
