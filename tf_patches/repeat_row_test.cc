#include "tf_patches/repeat_row.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace colcast {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return std::vector<T>(flat.data(), flat.data() + flat.size());
}

template <typename T>
Tensor Of(const TensorShape& shape, const std::vector<T>& values) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, shape);
  std::copy(values.begin(), values.end(), tensor.flat<T>().data());
  return tensor;
}

TEST(RepeatRowTest, AllRowsAreFilledForEveryRowCount) {
  for (int64_t rows = 1; rows <= 130; ++rows) {
    Tensor out;
    ASSERT_TRUE(RepeatRow(Of<int32_t>({1, 3}, {7, 8, 9}), {rows, 3}, &out).ok());
    const auto matrix = out.matrix<int32_t>();
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(matrix(row, 0), 7) << row << " of " << rows;
      ASSERT_EQ(matrix(row, 2), 9) << row << " of " << rows;
    }
  }
}

TEST(RepeatRowTest, SharesATensorThatHasTheTargetShape) {
  const Tensor rows = Of<int64_t>({2, 1}, {4, 5});
  Tensor out;
  ASSERT_TRUE(RepeatRow(rows, {2, 1}, &out).ok());
  EXPECT_EQ(out.data(), rows.data());

  const Tensor scalar = Of<int64_t>({}, {4});
  ASSERT_TRUE(RepeatRow(scalar, {}, &out).ok());
  EXPECT_EQ(out.data(), scalar.data());
}

TEST(RepeatRowTest, NoRowsAndNoElementsAreLegal) {
  Tensor out;
  ASSERT_TRUE(RepeatRow(Of<float>({1, 2}, {1, 2}), {0, 2}, &out).ok());
  EXPECT_EQ(out.shape(), TensorShape({0, 2}));
  ASSERT_TRUE(RepeatRow(Of<tstring>({1, 0}, {}), {5, 0}, &out).ok());
  EXPECT_EQ(out.shape(), TensorShape({5, 0}));
}

struct Refusal {
  TensorShape row;
  TensorShape target;
  const char* why;
};

class RepeatRowRefusesTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RepeatRowRefusesTest, ErrorsNameBothShapes) {
  const Refusal& refusal = GetParam();
  const Tensor row(tensorflow::DT_INT8, refusal.row);
  Tensor out;
  const absl::Status status = RepeatRow(row, refusal.target, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(refusal.row.DebugString()), HasSubstr(refusal.target.DebugString()),
                    HasSubstr(refusal.why)));
  EXPECT_EQ(out.shape(), TensorShape({0})) << "out was touched";
}

INSTANTIATE_TEST_SUITE_P(Cases, RepeatRowRefusesTest,
                         ::testing::Values(Refusal{{2, 3}, {4, 3}, "2 rows"},
                                           Refusal{{0, 3}, {4, 3}, "0 rows"},
                                           Refusal{{4, 3}, {1, 3}, "4 rows"},
                                           Refusal{{1, 2}, {4, 3}, "inner dimensions"},
                                           Refusal{{1, 3}, {4}, "ranks"},
                                           Refusal{{1}, {4, 1}, "ranks"},
                                           Refusal{{}, {4}, "scalar"}, Refusal{{1}, {}, "scalar"}));

TEST(RepeatRowTest, ATargetOfTooManyBytesIsRefused) {
  const int64_t rows = std::numeric_limits<int64_t>::max() / 2;
  Tensor out;
  const absl::Status status = RepeatRow(Of<double>({1}, {1}), {rows}, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("[1]"), HasSubstr(TensorShape({rows}).DebugString())));
}

TEST(RepeatRowTest, ATargetBeyondMemoryIsRefused) {
  Tensor out;
  const absl::Status status = RepeatRow(Of<int8_t>({1}, {1}), {int64_t{1} << 60}, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(RepeatFirstRowTest, CopiesRowZeroOverTheOthersInPlace) {
  Tensor tensor = Of<tstring>({4, 2}, {"a", "b", "", "", "", "", "", ""});
  RepeatFirstRow(&tensor);
  EXPECT_THAT(Values<tstring>(tensor), ElementsAre("a", "b", "a", "b", "a", "b", "a", "b"));
}

TEST(RepeatFirstRowTest, DoesNothingForScalarsEmptyTensorsAndSingleRows) {
  Tensor scalar = Of<int32_t>({}, {3});
  RepeatFirstRow(&scalar);
  EXPECT_EQ(scalar.scalar<int32_t>()(), 3);
  Tensor empty(tensorflow::DT_FLOAT, {0, 4});
  RepeatFirstRow(&empty);
  Tensor no_columns(tensorflow::DT_FLOAT, {4, 0});
  RepeatFirstRow(&no_columns);
  Tensor one = Of<int32_t>({1, 2}, {3, 4});
  RepeatFirstRow(&one);
  EXPECT_THAT(Values<int32_t>(one), ElementsAre(3, 4));
}

// Repeats a row of every dtype three times, from its typed field and from tensor_content.
class EveryDtypeTest : public ::testing::TestWithParam<DataType> {};

Tensor SomeRow(DataType dtype) {
  Tensor row(dtype, {1, 2});
  switch (dtype) {
    case tensorflow::DT_STRING:
      row.flat<tstring>()(0) = "first";
      row.flat<tstring>()(1) = std::string(40, 'z');
      return row;
    case tensorflow::DT_RESOURCE:
      row.flat<tensorflow::ResourceHandle>()(1).set_name("second");
      return row;
    case tensorflow::DT_VARIANT:
      row.flat<tensorflow::Variant>()(1) = Tensor(int64_t{5});
      return row;
    default:
      // The elements' bytes are 1, 0, 0, ... and 0, 1, 0, ...: different values that every dtype
      // allows, including bool.
      std::memset(row.data(), 0, row.TotalBytes());
      static_cast<char*>(row.data())[0] = 1;
      if (row.TotalBytes() > 2) static_cast<char*>(row.data())[row.TotalBytes() / 2 + 1] = 1;
      return row;
  }
}

void ExpectThreeTimes(const Tensor& row, const Tensor& out) {
  ASSERT_EQ(out.dtype(), row.dtype());
  ASSERT_EQ(out.shape(), TensorShape({3, 2}));
  TensorProto expected;
  row.AsProtoField(&expected);
  for (int i = 0; i < 3; ++i) {
    TensorProto actual;
    out.Slice(i, i + 1).AsProtoField(&actual);
    EXPECT_EQ(actual.SerializeAsString(), expected.SerializeAsString()) << "row " << i;
  }
}

TEST_P(EveryDtypeTest, RepeatsATensor) {
  const Tensor row = SomeRow(GetParam());
  Tensor out;
  ASSERT_TRUE(RepeatRow(row, {3, 2}, &out).ok());
  ExpectThreeTimes(row, out);
}

TEST_P(EveryDtypeTest, RepeatsATypedFieldAndTensorContent) {
  const Tensor row = SomeRow(GetParam());
  TensorProto typed, content;
  row.AsProtoField(&typed);
  row.AsProtoTensorContent(&content);
  for (const TensorProto& proto : {typed, content}) {
    Tensor out;
    ASSERT_TRUE(TensorFromProtoRepeated(proto, {3, 2}, &out).ok());
    ExpectThreeTimes(row, out);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, EveryDtypeTest,
    ::testing::Values(tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,
                      tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,
                      tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32,
                      tensorflow::DT_UINT64, tensorflow::DT_INT4, tensorflow::DT_UINT4,
                      tensorflow::DT_INT2, tensorflow::DT_UINT2, tensorflow::DT_BOOL,
                      tensorflow::DT_HALF, tensorflow::DT_BFLOAT16, tensorflow::DT_FLOAT8_E5M2,
                      tensorflow::DT_FLOAT8_E4M3FN, tensorflow::DT_FLOAT8_E4M3FNUZ,
                      tensorflow::DT_FLOAT8_E4M3B11FNUZ, tensorflow::DT_FLOAT8_E5M2FNUZ,
                      tensorflow::DT_COMPLEX64, tensorflow::DT_COMPLEX128, tensorflow::DT_QINT8,
                      tensorflow::DT_QINT16, tensorflow::DT_QINT32, tensorflow::DT_QUINT8,
                      tensorflow::DT_QUINT16, tensorflow::DT_STRING, tensorflow::DT_RESOURCE,
                      tensorflow::DT_VARIANT),
    [](const auto& info) { return tensorflow::DataTypeString(info.param); });

TensorProto FloatProto(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  TensorProto proto;
  proto.set_dtype(tensorflow::DT_FLOAT);
  for (const int64_t dim : dims) proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  for (const float value : values) proto.add_float_val(value);
  return proto;
}

TEST(TensorFromProtoTest, AProtoOfTheTargetShapeIsUnchanged) {
  Tensor out;
  ASSERT_TRUE(TensorFromProtoRepeated(FloatProto({2}, {3, 4}), {2}, &out).ok());
  EXPECT_THAT(Values<float>(out), ElementsAre(3, 4));
  ASSERT_TRUE(TensorFromProtoRepeated(FloatProto({}, {3}), {}, &out).ok());
  EXPECT_THAT(Values<float>(out), ElementsAre(3));
}

void ExpectRefused(const TensorProto& proto, const TensorShape& target, const char* culprit) {
  Tensor out;
  const absl::Status status = TensorFromProtoRepeated(proto, target, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(culprit), HasSubstr(target.DebugString())));
}

TEST(TensorFromProtoTest, RefusesDimensionsThatNoTensorHas) {
  const int64_t huge = int64_t{1} << 40;
  ExpectRefused(FloatProto({-1, 2}, {1, 2}), {3, 2}, "[-1,2]");
  ExpectRefused(FloatProto({huge, huge}, {1}), {3, 2}, "[1099511627776,1099511627776]");
  TensorProto unknown = FloatProto({}, {1});
  unknown.mutable_tensor_shape()->set_unknown_rank(true);
  ExpectRefused(unknown, {3}, "<unknown rank>");
}

TEST(TensorFromProtoTest, RefusesAShapeBeyondTheMachinesMemory) {
  const int64_t huge = int64_t{1} << 50;
  Tensor out;
  const absl::Status status = TensorFromProtoRepeated(FloatProto({huge}, {1}), {huge}, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(TensorFromProtoTest, RefusesADtypeThatDoesNotExist) {
  TensorProto proto = FloatProto({1}, {1});
  proto.set_dtype(tensorflow::DT_INVALID);
  ExpectRefused(proto, {3}, "dtype");
  proto.set_dtype(static_cast<DataType>(99));
  ExpectRefused(proto, {3}, "dtype");
}

TEST(TensorFromProtoTest, RefusesContentThatDoesNotFitItsShape) {
  TensorProto proto = FloatProto({1, 2}, {});
  for (const char* content : {"1234567", "123456789", "123456789012"}) {
    proto.set_tensor_content(content);
    ExpectRefused(proto, {3, 2}, "its content does not decode");
  }
}

}  // namespace
}  // namespace colcast
