#include "server/wire/predict_response.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/testing.h"

namespace colcast {
namespace {

using std::string_literals::operator""s;

std::string Write(const PredictResponse& response) {
  std::string bytes;
  EXPECT_TRUE(WritePredictResponse(response, MakeString(&bytes)).ok());
  return bytes;
}

// The TensorProto written for elements of any dtype in a [size] shape.
template <typename T>
std::string WriteTensor(DataType dtype, const std::vector<T>& elements,
                        TensorEncoding encoding = TensorEncoding::kTypedFields) {
  const std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
  const OutputColumn output = {"y", dtype, dims, elements.data(), nullptr};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  response.encoding = encoding;
  const std::string bytes = Write(response);
  Reader message{Bytes(bytes)}, entry;
  uint32_t tag;
  Bytes name, tensor;
  EXPECT_TRUE(message.ReadTag(&tag) && message.ReadNested(&entry) && entry.ReadTag(&tag) &&
              entry.ReadBytes(&name) && entry.ReadTag(&tag) && entry.ReadBytes(&tensor));
  EXPECT_EQ(name.ToString(), "y");
  EXPECT_TRUE(entry.done());
  return tensor.ToString();
}

std::string Header(DataType dtype, int64_t size) {
  return VarintField(1, dtype) + BytesField(2, BytesField(2, VarintField(1, size)));
}

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

std::string WriteStrings(const std::vector<std::string>& strings, TensorEncoding encoding) {
  const std::vector<int64_t> dims = {static_cast<int64_t>(strings.size())};
  const OutputColumn output = {"y", DT_STRING, dims, strings.data(), StringAt};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  response.encoding = encoding;
  return Write(response);
}

std::string OneOutput(const std::string& tensor) {
  return BytesField(1, BytesField(1, "y") + BytesField(2, tensor)) +
         BytesField(2, BytesField(2, ""));
}

TEST(PredictResponseTest, WritesLiteralBytes) {
  const std::vector<int64_t> dims = {2, 1};
  const std::vector<float> scores = {1, 2};
  const OutputColumn output = {"score", DT_FLOAT, dims, scores.data(), nullptr};
  PredictResponse response;
  response.model_name = "m";
  response.signature_name = "columnar";
  response.version = 300;
  response.outputs = Span<OutputColumn>(&output, 1);
  EXPECT_EQ(Write(response),
            "\x0a\x1f\x0a\x05score"                                     // outputs: key
            "\x12\x16\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01"  // value: float, [2,1]
            "\x2a\x08\0\0\x80\x3f\0\0\0\x40"                            // float_val
            "\x12\x12\x0a\x01m\x12\x03\x08\xac\x02\x1a\x08"
            "columnar"s);  // model_spec
}

TEST(PredictResponseTest, ScalarsHaveAnEmptyShapeAndEmptyTensorsNoValues) {
  const float one = 1;
  const std::vector<int64_t> empty_dims = {0, 3};
  const OutputColumn outputs[] = {{"a", DT_FLOAT, {}, &one, nullptr},
                                  {"b", DT_FLOAT, empty_dims, nullptr, nullptr}};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(outputs, 2);
  const std::string scalar = VarintField(1, 1) + BytesField(2, "") + BytesField(5, Raw<float>({1}));
  const std::string empty =
      VarintField(1, 1) + BytesField(2, BytesField(2, "") + BytesField(2, VarintField(1, 3)));
  EXPECT_EQ(Write(response), BytesField(1, BytesField(1, "a") + BytesField(2, scalar)) +
                                 BytesField(1, BytesField(1, "b") + BytesField(2, empty)) +
                                 BytesField(2, BytesField(2, "")));
}

TEST(PredictResponseTest, EveryDtypeHasItsField) {
  const auto ints = [](const std::vector<uint64_t>& values) {
    return BytesField(7, Varints(values));
  };
  const uint64_t minus_7 = uint64_t(-7);
  EXPECT_EQ(WriteTensor<int32_t>(DT_INT32, {300, -7}), Header(DT_INT32, 2) + ints({300, minus_7}));
  EXPECT_EQ(WriteTensor<int32_t>(DT_QINT32, {-7}), Header(DT_QINT32, 1) + ints({minus_7}));
  EXPECT_EQ(WriteTensor<int16_t>(DT_INT16, {-7}), Header(DT_INT16, 1) + ints({minus_7}));
  EXPECT_EQ(WriteTensor<uint16_t>(DT_UINT16, {65529}), Header(DT_UINT16, 1) + ints({65529}));
  EXPECT_EQ(WriteTensor<int8_t>(DT_INT8, {-7}), Header(DT_INT8, 1) + ints({minus_7}));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_QUINT8, {249}), Header(DT_QUINT8, 1) + ints({249}));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_INT4, {0x2c, 0xf9}),
            Header(DT_INT4, 2) + ints({uint64_t(-4), minus_7}));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_UINT4, {0x2c, 0xf9}), Header(DT_UINT4, 2) + ints({12, 9}));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_INT2, {0x2c, 0xf9, 2}),
            Header(DT_INT2, 3) + ints({0, 1, uint64_t(-2)}));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_UINT2, {0xff}), Header(DT_UINT2, 1) + ints({3}));
  EXPECT_EQ(WriteTensor<int64_t>(DT_INT64, {-7}),
            Header(DT_INT64, 1) + BytesField(10, Varints({minus_7})));
  EXPECT_EQ(WriteTensor<uint32_t>(DT_UINT32, {4000000000}),
            Header(DT_UINT32, 1) + BytesField(16, Varints({4000000000})));
  EXPECT_EQ(WriteTensor<uint64_t>(DT_UINT64, {minus_7}),
            Header(DT_UINT64, 1) + BytesField(17, Varints({minus_7})));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_BOOL, {0, 1}),
            Header(DT_BOOL, 2) + BytesField(11, Varints({0, 1})));
  EXPECT_EQ(WriteTensor<uint16_t>(DT_HALF, {0x3c00}),
            Header(DT_HALF, 1) + BytesField(13, Varints({0x3c00})));
  EXPECT_EQ(WriteTensor<uint16_t>(DT_BFLOAT16, {0xff80}),
            Header(DT_BFLOAT16, 1) + BytesField(13, Varints({0xff80})));
  EXPECT_EQ(WriteTensor<double>(DT_DOUBLE, {0.1}),
            Header(DT_DOUBLE, 1) + BytesField(6, Raw<double>({0.1})));
  EXPECT_EQ(WriteTensor<uint8_t>(DT_FLOAT8_E4M3FN, {0x11, 0x22}),
            Header(DT_FLOAT8_E4M3FN, 2) + BytesField(18, "\x11\x22"));
}

TEST(PredictResponseTest, ComplexNumbersAreTwoValuesEach) {
  const std::vector<float> parts = {1, 2};
  const std::vector<int64_t> dims = {1};
  const OutputColumn output = {"y", DT_COMPLEX64, dims, parts.data(), nullptr};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  EXPECT_EQ(Write(response),
            OneOutput(Header(DT_COMPLEX64, 1) + BytesField(9, Raw<float>({1, 2}))));
}

TEST(PredictResponseTest, TensorContentIsTheMemory) {
  EXPECT_EQ(WriteTensor<int64_t>(DT_INT64, {1, -2}, TensorEncoding::kTensorContent),
            Header(DT_INT64, 2) + BytesField(4, Raw<int64_t>({1, -2})));
}

TEST(PredictResponseTest, StringsAreRecordsOrAListInTensorContent) {
  const std::vector<std::string> strings = {"ab", "", std::string(200, 'x')};
  EXPECT_EQ(WriteStrings(strings, TensorEncoding::kTypedFields),
            OneOutput(Header(DT_STRING, 3) + BytesField(8, "ab") + BytesField(8, "") +
                      BytesField(8, strings[2])));
  EXPECT_EQ(WriteStrings(strings, TensorEncoding::kTensorContent),
            OneOutput(Header(DT_STRING, 3) +
                      BytesField(4, "\x02\x00\xc8\x01"s + strings[0] + strings[2])));
}

TEST(PredictResponseTest, ManyOutputsAreWrittenInOrder) {
  const std::vector<float> scores = {1};
  const std::vector<int64_t> dims = {1};
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("output" + std::to_string(i));
  std::vector<OutputColumn> outputs;
  for (const std::string& name : names) {
    outputs.push_back({name, DT_FLOAT, dims, scores.data(), nullptr});
  }
  PredictResponse response;
  response.outputs = outputs;
  std::string expected;
  for (const std::string& name : names) {
    expected += BytesField(
        1, BytesField(1, name) + BytesField(2, Header(DT_FLOAT, 1) + BytesField(5, Raw(scores))));
  }
  EXPECT_EQ(Write(response).substr(0, expected.size()), expected);
}

TEST(PredictResponseTest, AnErrorOfTheBufferEndsTheWriting) {
  const auto refuse = [](size_t, uint8_t**) { return ResourceExhausted("no room"); };
  EXPECT_EQ(WritePredictResponse(PredictResponse(), refuse).message, "no room");
}

TEST(PredictResponseTest, RefusesDtypesThatCanNotBeSent) {
  const OutputColumn output = {"table", DT_RESOURCE, {}, nullptr, nullptr};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  std::string bytes;
  const Status status = WritePredictResponse(response, MakeString(&bytes));
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_EQ(status.message, "output \"table\": DT_RESOURCE cannot be sent");
}

}  // namespace
}  // namespace colcast
