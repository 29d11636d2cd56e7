// Values of every datatype, raw and typed, merged and unpacked, are in the corpus of
// fuzz/infer_request_fuzz.cc, which compares them with protobuf.
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

TEST(DecodeInferRequestTest, ErrorsNameTheInputAndTheCause) {
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

TEST(InferResponseTest, ProtobufReadsAndWritesTheSameBytes) {
  const std::vector<float> scores = {0.5, -1, 3};
  const std::vector<std::string> texts = {"ab", "", std::string(300, 'x')};
  const double one = 1;
  const std::vector<int64_t> column = {3, 1}, row = {3}, none = {0, 4}, scalar = {};
  const std::vector<OutputColumn> outputs = {{"score", DT_FLOAT, column, scores.data(), nullptr},
                                             {"tag", DT_STRING, row, texts.data(), StringAt},
                                             {"none", DT_INT64, none, nullptr, nullptr},
                                             {"one", DT_DOUBLE, scalar, &one, nullptr}};
  PredictResponse response;
  response.model_name = "ranker";
  response.version = 12;
  response.id = "request 7";
  response.outputs = outputs;
  std::string bytes;
  ASSERT_TRUE(WriteInferResponse(response, MakeString(&bytes)).ok());
  inference::ModelInferResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.SerializeAsString(), bytes);
  inference::ModelInferResponse expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      model_name: "ranker" model_version: "12" id: "request 7"
      outputs { name: "score" datatype: "FP32" shape: 3 shape: 1 }
      outputs { name: "tag" datatype: "BYTES" shape: 3 }
      outputs { name: "none" datatype: "INT64" shape: 0 shape: 4 }
      outputs { name: "one" datatype: "FP64" })",
                                                            &expected));
  for (const std::string& raw :
       {Raw(scores), "\x02\0\0\0ab\0\0\0\0\x2c\x01\0\0"s + texts[2], ""s, Raw<double>({1})}) {
    expected.add_raw_output_contents(raw);
  }
  EXPECT_EQ(parsed.ShortDebugString(), expected.ShortDebugString());
}

TEST(InferResponseTest, RefusesADtypeThatTheProtocolLacks) {
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
