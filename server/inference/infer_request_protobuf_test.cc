#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/protos/open_inference.pb.h"
#include "server/wire/infer.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

using inference::ModelInferRequest;
using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelInferRequest::InferInputTensor* AddInput(const std::string& name, const std::string& datatype,
                                              const std::vector<int64_t>& shape,
                                              ModelInferRequest* request) {
  auto* const input = request->add_inputs();
  input->set_name(name);
  input->set_datatype(datatype);
  for (const int64_t dim : shape) input->add_shape(dim);
  return input;
}

// A request with one input and its raw contents.
ModelInferRequest RawInput(const std::string& datatype, const std::vector<int64_t>& shape,
                           const std::string& raw) {
  ModelInferRequest request;
  AddInput("x", datatype, shape, &request);
  request.add_raw_input_contents(raw);
  return request;
}

// Decodes the message in every slicing, reusing one request, and checks the result.
template <typename Check>
void Decode(const ModelInferRequest& message, Check&& check) {
  DecodedRequest request;
  ForEachSlicing(message.SerializeAsString(), [&](const Bytes& bytes) {
    const Status status = DecodeInferRequest(bytes, &request);
    ASSERT_TRUE(status.ok()) << status.message;
    check(request);
  });
}

void ExpectRefused(const std::string& message, const std::vector<std::string>& words) {
  DecodedRequest request;
  ForEachSlicing(message, [&](const Bytes& bytes) {
    const Status status = DecodeInferRequest(bytes, &request);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << status.message;
    for (const std::string& word : words) EXPECT_THAT(status.message, HasSubstr(word));
  });
}

void ExpectTooMany(const std::string& message, size_t max_columns, const std::string& words) {
  DecodedRequest request;
  const Status status = DecodeInferRequest(Bytes(message), &request, max_columns);
  EXPECT_EQ(status.code, StatusCode::kResourceExhausted) << status.message;
  EXPECT_EQ(status.message, "the request has " + words + " (--max_request_columns)");
}

void ExpectRefused(const ModelInferRequest& message, const std::vector<std::string>& words) {
  ExpectRefused(message.SerializeAsString(), words);
}

TEST(DecodeInferRequestTest, ReadsModelOutputsAndId) {
  ModelInferRequest message;
  message.set_model_name("ranker");
  message.set_model_version("7");
  message.set_id("abc");
  (*message.mutable_parameters())["signature_name"].set_string_param("columnar");
  (*message.mutable_parameters())["priority"].set_uint64_param(1);
  message.add_outputs()->set_name("score");
  Decode(message, [](const DecodedRequest& request) {
    EXPECT_EQ(request.model_spec.name, "ranker");
    EXPECT_EQ(request.model_spec.version, 7);
    EXPECT_EQ(request.model_spec.signature_name, "columnar");
    EXPECT_EQ(request.id, "abc");
    EXPECT_THAT(request.output_filter, ElementsAre("score"));
    EXPECT_EQ(request.columns().size(), 0u);
  });
}

TEST(DecodeInferRequestTest, AVersionThatIsNotANumberIsALabel) {
  ModelInferRequest message;
  message.set_model_version("stable");
  Decode(message, [](const DecodedRequest& request) {
    EXPECT_FALSE(request.model_spec.version.has_value());
    EXPECT_EQ(request.model_spec.version_label, "stable");
  });
}

TEST(DecodeInferRequestTest, RawContentsBelongToTheInputsInTheirOrder) {
  ModelInferRequest message;
  AddInput("age", "INT64", {1}, &message);
  AddInput("price", "FP32", {2, 1}, &message);
  AddInput("city", "BYTES", {2}, &message);
  message.add_raw_input_contents(Raw<int64_t>({-5}));
  message.add_raw_input_contents(Raw<float>({0.5, 2}));
  message.add_raw_input_contents("\x02\0\0\0Br\0\0\0\0"s);
  Decode(message, [](const DecodedRequest& request) {
    ASSERT_EQ(request.columns().size(), 3u);
    EXPECT_THAT(ElementsOf<int64_t>(*request.Find("age")), ElementsAre(-5));
    EXPECT_THAT(ElementsOf<float>(*request.Find("price")), ElementsAre(0.5, 2));
    EXPECT_THAT(request.Find("price")->dims, ElementsAre(2, 1));
    EXPECT_THAT(StringsOf(*request.Find("city")), ElementsAre("Br", ""));
  });
}

template <typename T>
void ExpectRaw(const std::string& datatype, DataType dtype, const std::vector<T>& values) {
  const std::string raw(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  Decode(RawInput(datatype, {static_cast<int64_t>(values.size())}, raw),
         [&](const DecodedRequest& request) {
           EXPECT_EQ(request.columns()[0].dtype, dtype);
           EXPECT_EQ(ElementsOf<T>(request.columns()[0]), values);
         });
}

TEST(DecodeInferRequestTest, ReadsEveryDatatypeRaw) {
  ExpectRaw<uint8_t>("BOOL", DT_BOOL, {1, 0, 1});
  ExpectRaw<uint8_t>("UINT8", DT_UINT8, {0, 255});
  ExpectRaw<uint16_t>("UINT16", DT_UINT16, {0, 65535});
  ExpectRaw<uint32_t>("UINT32", DT_UINT32, {0, 4294967295u});
  ExpectRaw<uint64_t>("UINT64", DT_UINT64, {0, ~uint64_t{0}});
  ExpectRaw<int8_t>("INT8", DT_INT8, {-128, 127});
  ExpectRaw<int16_t>("INT16", DT_INT16, {-32768, 32767});
  ExpectRaw<int32_t>("INT32", DT_INT32, {-1, 1});
  ExpectRaw<int64_t>("INT64", DT_INT64, {-1, 1});
  ExpectRaw<uint16_t>("FP16", DT_HALF, {0x3c00});
  ExpectRaw<uint16_t>("BF16", DT_BFLOAT16, {0x3f80});
  ExpectRaw<float>("FP32", DT_FLOAT, {0.1f});
  ExpectRaw<double>("FP64", DT_DOUBLE, {0.1});
}

TEST(DecodeInferRequestTest, ReadsTypedContents) {
  ModelInferRequest message;
  auto* contents = AddInput("bool", "BOOL", {2}, &message)->mutable_contents();
  contents->add_bool_contents(true);
  contents->add_bool_contents(false);
  AddInput("int8", "INT8", {1}, &message)->mutable_contents()->add_int_contents(-128);
  AddInput("int32", "INT32", {1}, &message)->mutable_contents()->add_int_contents(-7);
  AddInput("int64", "INT64", {1}, &message)->mutable_contents()->add_int64_contents(-8);
  AddInput("uint16", "UINT16", {1}, &message)->mutable_contents()->add_uint_contents(65535);
  AddInput("uint64", "UINT64", {1}, &message)->mutable_contents()->add_uint64_contents(9);
  AddInput("fp32", "FP32", {}, &message)->mutable_contents()->add_fp32_contents(0.5);
  AddInput("fp64", "FP64", {1, 1}, &message)->mutable_contents()->add_fp64_contents(0.1);
  contents = AddInput("bytes", "BYTES", {2}, &message)->mutable_contents();
  contents->add_bytes_contents("a\0b"s);
  contents->add_bytes_contents("");
  AddInput("none", "FP32", {0}, &message);
  Decode(message, [](const DecodedRequest& request) {
    EXPECT_THAT(ElementsOf<uint8_t>(*request.Find("bool")), ElementsAre(1, 0));
    EXPECT_THAT(ElementsOf<int8_t>(*request.Find("int8")), ElementsAre(-128));
    EXPECT_THAT(ElementsOf<int32_t>(*request.Find("int32")), ElementsAre(-7));
    EXPECT_THAT(ElementsOf<int64_t>(*request.Find("int64")), ElementsAre(-8));
    EXPECT_THAT(ElementsOf<uint16_t>(*request.Find("uint16")), ElementsAre(65535));
    EXPECT_THAT(ElementsOf<uint64_t>(*request.Find("uint64")), ElementsAre(9u));
    EXPECT_THAT(ElementsOf<float>(*request.Find("fp32")), ElementsAre(0.5));
    EXPECT_THAT(ElementsOf<double>(*request.Find("fp64")), ElementsAre(0.1));
    EXPECT_THAT(StringsOf(*request.Find("bytes")), ElementsAre("a\0b"s, ""));
    EXPECT_TRUE(ElementsOf<float>(*request.Find("none")).empty());
  });
}

TEST(DecodeInferRequestTest, ContentsMergeAndMayComeUnpackedAndInAnyOrder) {
  const std::string first = VarintField(3, 1) + BytesField(3, Varints({2, 300}));
  const std::string input = BytesField(5, first) + BytesField(5, VarintField(3, 4)) +
                            VarintField(3, 2) + BytesField(3, Varint(2)) + BytesField(2, "INT64") +
                            BytesField(1, "x");
  DecodedRequest request;
  ForEachSlicing(BytesField(5, input), [&](const Bytes& bytes) {
    const Status status = DecodeInferRequest(bytes, &request);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_THAT(ElementsOf<int64_t>(request.columns()[0]), ElementsAre(1, 2, 300, 4));
  });
}

TEST(DecodeInferRequestTest, RefusesValuesThatDoNotFitTheShape) {
  ExpectRefused(RawInput("INT64", {2}, Raw<int64_t>({1})), {"\"x\"", "8 bytes", "[2]", "INT64"});
  ExpectRefused(RawInput("INT64", {2}, ""), {"\"x\"", "0 bytes", "[2]"});
  ExpectRefused(RawInput("INT64", {1}, "1234567"), {"7 bytes"});
  ExpectRefused(RawInput("FP32", {-1}, ""), {"\"x\"", "-1"});
  ExpectRefused(RawInput("FP32", {int64_t{1} << 40, int64_t{1} << 40}, ""), {"\"x\"", "int64"});
  ExpectRefused(RawInput("FP32", {int64_t{1} << 61}, "1234"), {"\"x\"", "4 bytes"});
  ExpectRefused(RawInput("BOOL", {2}, "\x01\x02"), {"\"x\"", "byte 1 is 2", "0 or 1"});
  ModelInferRequest typed;
  AddInput("x", "INT64", {2}, &typed)->mutable_contents()->add_int64_contents(1);
  ExpectRefused(typed, {"\"x\"", "1 values", "int64_contents", "[2]", "2 elements"});
}

TEST(DecodeInferRequestTest, RefusesTruncatedAndExcessStrings) {
  ExpectRefused(RawInput("BYTES", {1}, "\x03\0\0\0ab"s), {"\"x\"", "inside of string 0"});
  ExpectRefused(RawInput("BYTES", {1}, "\xff\xff\xff\xff"s), {"\"x\"", "inside of string 0"});
  ExpectRefused(RawInput("BYTES", {1}, "\x01\0"s), {"\"x\"", "2 bytes"});
  ExpectRefused(RawInput("BYTES", {2}, "\x04\0\0\0abcd"s), {"\"x\"", "inside of string 1"});
  ExpectRefused(RawInput("BYTES", {1}, "\0\0\0\0\0\0\0\0"s), {"\"x\"", "4 bytes follow"});
  ExpectRefused(RawInput("BYTES", {int64_t{1} << 62}, "\0\0\0\0"s), {"\"x\"", "4 bytes were sent"});
}

TEST(DecodeInferRequestTest, RefusesRawContentsThatDoNotMatchTheInputs) {
  ModelInferRequest message = RawInput("INT64", {1}, Raw<int64_t>({1}));
  message.add_raw_input_contents(Raw<int64_t>({2}));
  ExpectRefused(message, {"2 raw_input_contents", "1 inputs"});
  message = RawInput("INT64", {1}, Raw<int64_t>({1}));
  message.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
  ExpectRefused(message, {"\"x\"", "contents", "raw_input_contents"});
}

TEST(DecodeInferRequestTest, RefusesTypedContentsOfAnotherDatatype) {
  ModelInferRequest message;
  AddInput("x", "INT64", {1}, &message)->mutable_contents()->add_int_contents(1);
  ExpectRefused(message, {"\"x\"", "int_contents", "INT64", "int64_contents"});
  message.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
  ExpectRefused(message, {"\"x\"", "int_contents"});
  message.Clear();
  AddInput("x", "FP16", {1}, &message)->mutable_contents()->add_fp32_contents(1);
  ExpectRefused(message, {"\"x\"", "FP16", "raw_input_contents only"});
  message.Clear();
  AddInput("x", "UINT8", {1}, &message)->mutable_contents()->add_uint_contents(256);
  ExpectRefused(message, {"\"x\"", "256", "UINT8", "0 to 255"});
}

TEST(DecodeInferRequestTest, RefusesUnsupportedFieldsAndParameters) {
  ExpectRefused(RawInput("FLOAT", {1}, "1234"), {"\"x\"", "\"FLOAT\"", "FP32"});
  ExpectRefused(RawInput("", {1}, "1234"), {"\"x\"", "datatype"});
  ModelInferRequest message = RawInput("FP32", {1}, "1234");
  AddInput("x", "FP32", {1}, &message);
  message.add_raw_input_contents("1234");
  ExpectRefused(message, {"\"x\"", "twice"});
  message.Clear();
  (*message.mutable_parameters())["signature_name"].set_int64_param(1);
  ExpectRefused(message, {"\"signature_name\"", "string_param"});
  message.Clear();
  (*message.add_outputs()->mutable_parameters())["classification"].set_int64_param(3);
  ExpectRefused(message, {"classification"});
  message.Clear();
  (*AddInput("x", "FP32", {1}, &message)->mutable_parameters())["shared_memory_region"]
      .set_string_param("r");
  ExpectRefused(message, {"shared memory"});
}

TEST(DecodeInferRequestTest, AnUnknownFieldBesideAParameterIsIgnored) {
  ModelInferRequest message;
  auto& parameter = (*message.mutable_parameters())["signature_name"];
  parameter.set_string_param("columnar");
  parameter.GetReflection()->MutableUnknownFields(&parameter)->AddVarint(99, 1);
  Decode(message, [](const DecodedRequest& request) {
    EXPECT_EQ(request.model_spec.signature_name, "columnar");
  });
}

TEST(DecodeInferRequestTest, RefusesMoreInputsThanAllowed) {
  ModelInferRequest message;
  AddInput("a", "FP32", {0}, &message);
  AddInput("b", "FP32", {0}, &message);
  const std::string bytes = message.SerializeAsString();
  ExpectTooMany(bytes, 1, "more than 1 inputs");
  DecodedRequest request;
  EXPECT_TRUE(DecodeInferRequest(Bytes(bytes), &request, 2).ok());
}

// Each item takes 2 to 4 bytes on the wire but would take 8 to 32 in memory.
TEST(DecodeInferRequestTest, RequestsBeyondLimitsAreRefusedBeforeTheyTakeMemory) {
  constexpr int kMany = 1'000'000;
  const auto many = [](const std::string& piece) {
    std::string pieces;
    for (int i = 0; i < kMany; ++i) pieces += piece;
    return pieces;
  };
  const std::string input = BytesField(1, "x") + BytesField(2, "BYTES");
  ExpectTooMany(many(BytesField(7, "")), 100, "more than 100 raw_input_contents");
  ExpectTooMany(many(BytesField(6, "")), 100, "more than 100 outputs");
  ExpectTooMany(BytesField(5, input + many(BytesField(5, BytesField(8, "")))), 100,
                "more than 100 contents that are merged into others");
  for (const std::string& dims : {many(VarintField(3, 1)), BytesField(3, many(Varint(1)))}) {
    DecodedRequest request;
    const std::string message = BytesField(5, input + dims);
    const Status status = DecodeInferRequest(Bytes(message), &request);
    EXPECT_EQ(status.message, "input \"x\": more than 254 dimensions");
    EXPECT_LE(request.columns()[0].dims.size(), 255u);
  }
}

TEST(DecodeInferRequestTest, StringsAreNotCopied) {
  ModelInferRequest typed, raw = RawInput("BYTES", {3}, "\0\0\0\0\x02\0\0\0ab\0\0\0\0"s);
  auto* const contents = AddInput("x", "BYTES", {3}, &typed)->mutable_contents();
  for (const char* const text : {"", "ab", ""}) contents->add_bytes_contents(text);
  for (const ModelInferRequest* const message : {&typed, &raw}) {
    Decode(*message, [](const DecodedRequest& request) {
      const Column& column = request.columns()[0];
      EXPECT_THAT(StringsOf(column), ElementsAre("", "ab", ""));
      EXPECT_EQ(column.values.strings.capacity(), 0u);
    });
  }
}

TEST(DecodeInferRequestTest, AFieldOfAnotherWireTypeIsUnknown) {
  const std::string contents = VarintField(8, 5) + BytesField(8, "a") + VarintField(6, 1);
  DecodedRequest request;
  ForEachSlicing(BytesField(5, BytesField(1, "x") + BytesField(2, "BYTES") + VarintField(3, 1) +
                                   BytesField(5, contents)),
                 [&](const Bytes& bytes) {
                   const Status status = DecodeInferRequest(bytes, &request);
                   ASSERT_TRUE(status.ok()) << status.message;
                   EXPECT_THAT(StringsOf(request.columns()[0]), ElementsAre("a"));
                 });
}

// A truncated or modified message must be refused or decoded as protobuf decodes it.
TEST(DecodeInferRequestTest, AgreesWithProtobufOnDamagedMessages) {
  ModelInferRequest message;
  message.set_model_name("m");
  (*message.mutable_parameters())["signature_name"].set_string_param("s");
  AddInput("a", "INT64", {2}, &message)->mutable_contents()->add_int64_contents(300);
  message.mutable_inputs(0)->mutable_contents()->add_int64_contents(-1);
  AddInput("b", "BYTES", {1}, &message)->mutable_contents()->add_bytes_contents("text");
  (*message.add_outputs()->mutable_parameters())["binary_data"].set_bool_param(true);
  const std::string whole = message.SerializeAsString();
  std::vector<std::string> damaged;
  for (size_t i = 0; i < whole.size(); ++i) {
    damaged.push_back(whole.substr(0, i));
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128}) {
      damaged.push_back(whole);
      damaged.back()[i] = static_cast<char>(whole[i] ^ flip);
    }
  }
  DecodedRequest request;
  for (const std::string& bytes : damaged) {
    const Status status = DecodeInferRequest(Bytes(bytes), &request);
    ModelInferRequest parsed;
    const bool well_formed = parsed.ParseFromString(bytes);
    const bool called_malformed = status.message.find("malformed") != std::string::npos;
    EXPECT_FALSE(status.ok() && !well_formed) << testing::PrintToString(bytes);
    EXPECT_FALSE(called_malformed && well_formed) << status.message;
    EXPECT_NE(status.code, StatusCode::kInternal) << status.message;
    if (!status.ok()) continue;
    ASSERT_EQ(request.columns().size(), static_cast<size_t>(parsed.inputs_size()));
    EXPECT_EQ(request.model_spec.name, parsed.model_name());
    for (int i = 0; i < parsed.inputs_size(); ++i) {
      EXPECT_EQ(request.columns()[i].name, parsed.inputs(i).name());
      const auto& contents = parsed.inputs(i).contents();
      if (parsed.inputs(i).datatype() == "INT64") {
        const std::vector<int64_t> values(contents.int64_contents().begin(),
                                          contents.int64_contents().end());
        EXPECT_EQ(ElementsOf<int64_t>(request.columns()[i]), values);
      }
    }
  }
}

TEST(DecodeInferRequestTest, SaysWhereAMessageIsMalformed) {
  ExpectRefused(BytesField(5, BytesField(2, "\xff")),
                {"malformed ModelInferRequest: not valid UTF-8 (field 5.2, byte 4"});
  ExpectRefused(
      BytesField(5, BytesField(5, BytesField(6, "123"))),
      {"malformed ModelInferRequest: the packed field's 3 bytes", "multiple of 4 (field 5.5.6,"});
  ExpectRefused("\x2a\x05", {"malformed ModelInferRequest: length goes past the end (field 5,"});
}

}  // namespace
}  // namespace colcast
