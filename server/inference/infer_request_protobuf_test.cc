// fuzz/infer_request_fuzz.cc compares the values of every datatype, raw and typed, with protobuf.
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
