#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
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

ModelInferRequest Parsed(const std::string& text) {
  ModelInferRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}

// An input "x" with one dimension, as text.
std::string InputX(const std::string& datatype, int64_t rows, const std::string& rest = "") {
  return "inputs { name: 'x' datatype: '" + datatype + "' shape: " + std::to_string(rows) + ' ' +
         rest + '}';
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

TEST(DecodeInferRequestTest, ReadsModelOutputsAndId) {
  Decode(Parsed(R"(
           model_name: "ranker" model_version: "7" id: "abc"
           parameters { key: "signature_name" value { string_param: "columnar" } }
           parameters { key: "priority" value { uint64_param: 1 } }
           outputs { name: "score" })"),
         [](const DecodedRequest& request) {
           EXPECT_EQ(request.model_spec.name, "ranker");
           EXPECT_EQ(request.model_spec.version, 7);
           EXPECT_EQ(request.model_spec.signature_name, "columnar");
           EXPECT_EQ(request.id, "abc");
           EXPECT_THAT(request.output_filter, ElementsAre("score"));
           EXPECT_EQ(request.columns().size(), 0u);
         });
}

TEST(DecodeInferRequestTest, AVersionThatIsNotANumberIsALabel) {
  Decode(Parsed("model_version: 'stable'"), [](const DecodedRequest& request) {
    EXPECT_FALSE(request.model_spec.version.has_value());
    EXPECT_EQ(request.model_spec.version_label, "stable");
  });
}

TEST(DecodeInferRequestTest, RawContentsBelongToTheInputsInTheirOrder) {
  ModelInferRequest message = Parsed(R"(
      inputs { name: "age" datatype: "INT64" shape: 1 }
      inputs { name: "price" datatype: "FP32" shape: 2 shape: 1 }
      inputs { name: "city" datatype: "BYTES" shape: 2 })");
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

TEST(DecodeInferRequestTest, ReadsTypedContents) {
  Decode(Parsed(R"(
           inputs { name: "bool" datatype: "BOOL" shape: 2
                    contents { bool_contents: true bool_contents: false } }
           inputs { name: "int8" datatype: "INT8" shape: 1 contents { int_contents: -128 } }
           inputs { name: "int32" datatype: "INT32" shape: 1 contents { int_contents: -7 } }
           inputs { name: "int64" datatype: "INT64" shape: 1 contents { int64_contents: -8 } }
           inputs { name: "uint16" datatype: "UINT16" shape: 1 contents { uint_contents: 65535 } }
           inputs { name: "uint64" datatype: "UINT64" shape: 1 contents { uint64_contents: 9 } }
           inputs { name: "fp32" datatype: "FP32" contents { fp32_contents: 0.5 } }
           inputs { name: "fp64" datatype: "FP64" shape: 1 shape: 1 contents { fp64_contents: 0.1 } }
           inputs { name: "bytes" datatype: "BYTES" shape: 2
                    contents { bytes_contents: "a\000b" bytes_contents: "" } }
           inputs { name: "none" datatype: "FP32" shape: 0 })"),
         [](const DecodedRequest& request) {
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

TEST(DecodeInferRequestTest, RefusalsNameInputAndCause) {
  const auto with = [](const std::string& text, std::vector<std::string> raw) {
    ModelInferRequest request = Parsed(text);
    for (std::string& contents : raw) request.add_raw_input_contents(std::move(contents));
    return request.SerializeAsString();
  };
  const std::string one = Raw<int64_t>({1});
  const std::string huge = std::to_string(int64_t{1} << 40);
  const struct {
    std::string message;
    std::vector<std::string> words;
  } kCases[] = {
      {with(InputX("INT64", 2), {one}), {"\"x\"", "8 bytes", "[2]", "INT64"}},
      {with(InputX("INT64", 2), {""}), {"\"x\"", "0 bytes", "[2]"}},
      {with(InputX("INT64", 1), {"1234567"}), {"7 bytes"}},
      {with(InputX("FP32", -1), {""}), {"\"x\"", "-1"}},
      {with(InputX("FP32", int64_t{1} << 40, "shape: " + huge), {""}), {"\"x\"", "int64"}},
      {with(InputX("FP32", int64_t{1} << 61), {"1234"}), {"\"x\"", "4 bytes"}},
      {with(InputX("INT64", 2, "contents { int64_contents: 1 }"), {}),
       {"\"x\"", "1 values", "int64_contents", "[2]", "2 elements"}},
      {with(InputX("BYTES", 1), {"\x03\0\0\0ab"s}), {"\"x\"", "6 bytes", "1 strings", "[1]"}},
      {with(InputX("BYTES", 1), {"\0\0\0\0\0\0\0\0"s}), {"\"x\"", "8 bytes", "1 strings"}},
      {with(InputX("BYTES", int64_t{1} << 62), {"\0\0\0\0"s}), {"\"x\"", "4 bytes"}},
      {with(InputX("INT64", 1), {one, one}), {"2 raw_input_contents", "1 inputs"}},
      {with(InputX("INT64", 1, "contents { int64_contents: 1 }"), {one}),
       {"\"x\"", "contents", "raw_input_contents"}},
      {with(InputX("INT64", 1, "contents { int_contents: 1 }"), {}),
       {"\"x\"", "int_contents", "INT64", "int64_contents"}},
      {with(InputX("INT64", 1, "contents { int_contents: 1 int64_contents: 1 }"), {}),
       {"\"x\"", "int_contents"}},
      {with(InputX("FP16", 1, "contents { fp32_contents: 1 }"), {}),
       {"\"x\"", "FP16", "is sent in raw_input_contents"}},
      {with(InputX("UINT8", 1, "contents { uint_contents: 256 }"), {}),
       {"\"x\"", "256", "UINT8", "0 to 255"}},
      {with(InputX("FLOAT", 1), {"1234"}), {"\"x\"", "\"FLOAT\"", "FP32"}},
      {with(InputX("", 1), {"1234"}), {"\"x\"", "datatype"}},
      {with(InputX("FP32", 1) + InputX("FP32", 1), {"1234", "1234"}), {"\"x\"", "twice"}},
      {with("parameters { key: 'signature_name' value { int64_param: 1 } }", {}),
       {"\"signature_name\"", "string_param"}},
      {with("outputs { parameters { key: 'classification' value { int64_param: 3 } } }", {}),
       {"classification"}},
      {with(InputX("FP32", 1, "parameters { key: 'shared_memory_region' value {} }"), {}),
       {"shared memory"}},
      {BytesField(5, BytesField(2, "\xff")),
       {"malformed ModelInferRequest: not valid UTF-8 (field 5.2, byte 4"}},
      {BytesField(5, BytesField(5, BytesField(6, "123"))),
       {"malformed ModelInferRequest: the packed field's 3 bytes", "of 4 (field 5.5.6,"}},
      {"\x2a\x05", {"malformed ModelInferRequest: length goes past the end (field 5,"}},
  };
  for (const auto& [message, words] : kCases) ExpectRefused(message, words);
}

TEST(DecodeInferRequestTest, RefusesMoreInputsThanAllowed) {
  const std::string bytes =
      Parsed("inputs { datatype: 'FP32' shape: 0 } inputs { name: 'b' datatype: 'FP32' shape: 0 }")
          .SerializeAsString();
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
  const ModelInferRequest typed = Parsed(InputX(
      "BYTES", 3, "contents { bytes_contents: '' bytes_contents: 'ab' bytes_contents: '' }"));
  ModelInferRequest raw = Parsed(InputX("BYTES", 3));
  raw.add_raw_input_contents("\0\0\0\0\x02\0\0\0ab\0\0\0\0"s);
  for (const ModelInferRequest& message : {typed, raw}) {
    Decode(message, [](const DecodedRequest& request) {
      const Column& column = request.columns()[0];
      EXPECT_THAT(StringsOf(column), ElementsAre("", "ab", ""));
      EXPECT_EQ(column.values.strings.capacity(), 0u);
    });
  }
}

// A truncated or modified message must be refused or decoded as protobuf decodes it.
TEST(DecodeInferRequestTest, AgreesWithProtobufOnDamagedMessages) {
  const std::string whole = Parsed(R"(
      model_name: "m" parameters { key: "signature_name" value { string_param: "s" } }
      inputs { name: "a" datatype: "INT64" shape: 2
               contents { int64_contents: 300 int64_contents: -1 } }
      inputs { name: "b" datatype: "BYTES" shape: 1 contents { bytes_contents: "text" } }
      outputs { parameters { key: "binary_data" value { bool_param: true } } })")
                                .SerializeAsString();
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

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

inference::ModelInferResponse Write(const std::vector<OutputColumn>& outputs,
                                    PredictResponse response = {}) {
  response.outputs = outputs;
  std::string bytes;
  EXPECT_TRUE(WriteInferResponse(response, MakeString(&bytes)).ok());
  inference::ModelInferResponse parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.SerializeAsString(), bytes);  // protobuf would write the same bytes
  return parsed;
}

TEST(InferResponseTest, HasModelVersionAndRequestId) {
  PredictResponse response;
  response.model_name = "ranker";
  response.version = 12;
  response.id = "request 7";
  const auto parsed = Write({}, response);
  EXPECT_EQ(parsed.model_name(), "ranker");
  EXPECT_EQ(parsed.model_version(), "12");
  EXPECT_EQ(parsed.id(), "request 7");
}

TEST(InferResponseTest, WritesNumbersInMemoryOrder) {
  const std::vector<float> scores = {0.5, -1, 3};
  const std::vector<int64_t> dims = {3, 1};
  const auto parsed = Write({{"score", DT_FLOAT, dims, scores.data(), nullptr}});
  ASSERT_EQ(parsed.outputs_size(), 1);
  EXPECT_EQ(parsed.outputs(0).name(), "score");
  EXPECT_EQ(parsed.outputs(0).datatype(), "FP32");
  EXPECT_THAT(parsed.outputs(0).shape(), ElementsAre(3, 1));
  EXPECT_FALSE(parsed.outputs(0).has_contents());
  EXPECT_THAT(parsed.raw_output_contents(), ElementsAre(Raw(scores)));
}

TEST(InferResponseTest, WritesStringsBehindTheirLengths) {
  const std::vector<std::string> texts = {"ab", "", std::string(300, 'x')};
  const std::vector<int64_t> dims = {3};
  const auto parsed = Write({{"tag", DT_STRING, dims, texts.data(), StringAt}});
  EXPECT_EQ(parsed.outputs(0).datatype(), "BYTES");
  EXPECT_THAT(parsed.raw_output_contents(),
              ElementsAre("\x02\0\0\0ab\0\0\0\0\x2c\x01\0\0"s + texts[2]));
}

TEST(InferResponseTest, EveryOutputHasRawContentsEvenIfTheyAreEmpty) {
  const std::vector<int64_t> none = {0, 4}, scalar = {};
  const double one = 1;
  const auto parsed =
      Write({{"a", DT_INT64, none, nullptr, nullptr}, {"b", DT_DOUBLE, scalar, &one, nullptr}});
  EXPECT_THAT(parsed.outputs(0).shape(), ElementsAre(0, 4));
  EXPECT_EQ(parsed.outputs(1).shape_size(), 0);
  EXPECT_THAT(parsed.raw_output_contents(), ElementsAre("", Raw<double>({1})));
}

TEST(InferResponseTest, RefusesADtypeThatTheProtocolDoesNotHave) {
  const std::vector<int64_t> dims = {1};
  const std::vector<OutputColumn> outputs = {{"wave", DT_COMPLEX64, dims, nullptr, nullptr}};
  PredictResponse response;
  response.outputs = outputs;
  std::string bytes;
  const Status status = WriteInferResponse(response, MakeString(&bytes));
  EXPECT_EQ(status.code, StatusCode::kInternal);
  EXPECT_THAT(status.message, HasSubstr("\"wave\""));
  EXPECT_THAT(status.message, HasSubstr("DT_COMPLEX64"));
}

}  // namespace
}  // namespace colcast
