#include "server/rest/infer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/http1/message.h"
#include "server/wire/testing.h"

namespace colcast::http {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kMaxInputs = 3;

// A parsed request; keeps the body to which its columns point.
struct Parsed {
  SliceBuffer buffer;
  std::unique_ptr<InferJson> json;
  Status status;

  DecodedRequest& request() { return json->request(); }
  const Column& column(size_t index) { return json->request().columns()[index]; }
};

Parsed Read(const std::string& json, const std::string& binary = "", bool header = false,
            bool compress = false) {
  Parsed parsed;
  const bool has_header = header || !binary.empty();
  parsed.json = std::make_unique<InferJson>(has_header ? std::to_string(json.size()) : "",
                                            kMaxInputs, nullptr);
  parsed.buffer.Append(compress ? Gzip(json + binary) : json + binary);
  BodyBytes bytes{parsed.buffer.slices()};
  bytes.gzip = compress;
  parsed.status = parsed.json->Read(bytes, nullptr);
  return parsed;
}

std::string Input(const std::string& members) { return R"({"inputs":[{)" + members + "}]}"; }

void ExpectRefused(const std::string& json, const std::vector<std::string>& words,
                   const std::string& binary = "", bool header = false) {
  const Parsed parsed = Read(json, binary, header);
  EXPECT_EQ(parsed.status.code, StatusCode::kInvalidArgument) << json;
  for (const std::string& word : words) EXPECT_THAT(parsed.status.message, HasSubstr(word)) << json;
}

TEST(InferJsonTest, TooManyRowsAreRefusedBeforeTheRestIsRead) {
  const RowLimit limit{3, [](const std::string& input) { return input != "fixed"; }};
  const auto read = [&](const std::string& json) {
    InferJson infer("", kMaxInputs, nullptr);
    const Slice slice = {reinterpret_cast<const uint8_t*>(json.data()), json.size()};
    return infer.Read({{&slice, 1}, false, json.size(), &limit}, nullptr);
  };
  const std::string x = R"({"inputs":[{"name":"x","datatype":"INT64","shape":)";
  for (const char* const rest : {R"([4],"data":[no JSON)", R"([4,2],"data":[no)",
                                 R"([3],"data":[1,2,3,4,no)", R"([3,1],"data":[[1],[2],[3],[no)"}) {
    const Status status = read(x + rest);
    EXPECT_EQ(status.code, StatusCode::kResourceExhausted) << rest;
    EXPECT_THAT(status.message, HasSubstr("input \"x\" has more rows than max_request_rows"));
  }
  EXPECT_TRUE(read(x + R"([3,2],"data":[1,2,3,4,5,6]}]})").ok());
  EXPECT_TRUE(
      read(R"({"inputs":[{"name":"fixed","datatype":"INT64","shape":[4],"data":[1,2,3,4]}]})")
          .ok());
}

TEST(InferJsonTest, ReadsFlatAndNestedData) {
  Parsed parsed = Read(R"({"id":"7","parameters":{"signature_name":"columnar","other":[1]},
      "inputs":[{"name":"a","shape":[2,2],"datatype":"FP32","data":[1,2.5,-3,4]},
                {"name":"b","shape":[2,2],"datatype":"INT64","data":[[1,2],[3,4]]},
                {"name":"c","shape":[2],"datatype":"BYTES","data":["x","é"]}],
      "outputs":[{"name":"score"}]})");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message;
  EXPECT_EQ(parsed.json->signature_name(), "columnar");
  EXPECT_THAT(parsed.request().output_filter, ElementsAre("score"));
  EXPECT_THAT(parsed.column(0).dims, ElementsAre(2, 2));
  EXPECT_THAT(ElementsOf<float>(parsed.column(0)), ElementsAre(1, 2.5, -3, 4));
  EXPECT_THAT(parsed.column(1).dims, ElementsAre(2, 2));
  EXPECT_THAT(ElementsOf<int64_t>(parsed.column(1)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(StringsOf(parsed.column(2)), ElementsAre("x", "é"));
}

TEST(InferJsonTest, MembersMayComeInAnyOrder) {
  Parsed parsed = Read(Input(R"("data":[true,false],"shape":[2],"datatype":"BOOL","name":"x")"));
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message;
  EXPECT_EQ(parsed.column(0).name, "x");
  EXPECT_THAT(ElementsOf<uint8_t>(parsed.column(0)), ElementsAre(1, 0));
}

TEST(InferJsonTest, ReadsIntegersOfEverySize) {
  for (const char* datatype :
       {"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"}) {
    const std::string head = R"("name":"x","shape":[1],"datatype":")" + std::string(datatype);
    EXPECT_TRUE(Read(Input(head + R"(","data":[7])")).status.ok()) << datatype;
    ExpectRefused(Input(head + R"(","data":[1.5])"), {"\"x\"", "whole number"});
    ExpectRefused(Input(head + R"(","data":[99999999999999999999])"), {"\"x\""});
  }
}

TEST(InferJsonTest, ReadsBinaryDataBehindTheJson) {
  const std::string json =
      R"({"inputs":[{"name":"a","shape":[2],"datatype":"INT64","parameters":{"binary_data_size":16}},
                    {"name":"b","shape":[1],"datatype":"FP32","data":[0.5]},
                    {"name":"c","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":10}}]})";
  const std::string binary = Raw<int64_t>({-1, 5}) + "\x02\0\0\0ab\0\0\0\0"s;
  for (const bool compress : {false, true}) {
    Parsed parsed = Read(json, binary, true, compress);
    ASSERT_TRUE(parsed.status.ok()) << parsed.status.message;
    EXPECT_EQ(parsed.json->keeps_body(), !compress);
    EXPECT_THAT(ElementsOf<int64_t>(parsed.column(0)), ElementsAre(-1, 5));
    EXPECT_THAT(ElementsOf<float>(parsed.column(1)), ElementsAre(0.5));
    EXPECT_THAT(StringsOf(parsed.column(2)), ElementsAre("ab", ""));
  }
}

TEST(InferJsonTest, RefusesBinaryDataThatAreNotThoseOfTheInputs) {
  const std::string json =
      Input(R"("name":"x","shape":[1],"datatype":"INT64","parameters":{"binary_data_size":8})");
  ExpectRefused(json, {"\"x\"", "is 8", "0 bytes are left"});
  ExpectRefused(json, {"\"x\"", "is 8", "7 bytes are left"}, "1234567");
  ExpectRefused(json, {"9 bytes after its JSON", " 8 "}, "123456789");
  ExpectRefused(Input(R"("name":"x","shape":[2],"datatype":"INT64",
                         "parameters":{"binary_data_size":8})"),
                {"\"x\"", "8 bytes were sent", "[2]"}, "12345678");
  ExpectRefused(Input(R"("name":"x","shape":[1],"datatype":"INT64","data":[1],
                         "parameters":{"binary_data_size":8})"),
                {"\"x\"", "both"}, "12345678");
  ExpectRefused(Input(R"("name":"x","shape":[1],"datatype":"INT64",
                         "parameters":{"binary_data_size":-1})"),
                {"\"x\"", "binary_data_size"});
  ExpectRefused(Input(R"("name":"x","shape":[0],"datatype":"INT64","data":[])"),
                {"1 bytes after its JSON"}, "x");
  InferJson wrong("1000", kMaxInputs, nullptr);
  EXPECT_THAT(wrong.Read({}, nullptr).message, HasSubstr("Inference-Header-Content-Length"));
}

TEST(InferJsonTest, RefusesWhatIsNoRequest) {
  ExpectRefused("[]", {"the body is a list"});
  ExpectRefused("{}", {"\"inputs\""});
  ExpectRefused(R"({"inputs":{}})", {"\"inputs\" is", "list of tensors"});
  ExpectRefused(R"({"inputs":[1]})", {"\"inputs\"[0]", "object"});
  ExpectRefused(Input(R"("shape":[1],"datatype":"FP32","data":[1])"), {"\"inputs\"[0]", "name"});
  ExpectRefused(Input(R"("name":"x","shape":[1],"data":[1])"), {"\"x\"", "datatype"});
  ExpectRefused(Input(R"("name":"x","shape":[1],"datatype":"FLOAT","data":[1])"),
                {"\"x\"", "\"FLOAT\""});
  ExpectRefused(Input(R"("name":"x","shape":[1],"datatype":"FP32")"), {"\"x\"", "neither"});
  std::string ones = "1";
  for (int i = 0; i < 300; ++i) ones += ",1";
  ExpectRefused(Input("\"name\":\"x\",\"shape\":[" + ones + R"(],"datatype":"FP32","data":[1])"),
                {"\"x\"", "more than 254 dimensions"});
  ExpectRefused(Input(R"("name":"x","shape":[-1],"datatype":"FP32","data":[1])"),
                {"\"x\"", "\"shape\""});
  ExpectRefused(Input(R"("name":"x","shape":1,"datatype":"FP32","data":[1])"),
                {"\"x\"", "\"shape\""});
  ExpectRefused(Input(R"("name":"x","shape":[3],"datatype":"FP32","data":[1,2])"),
                {"\"x\"", "[2]", "[3]"});
  ExpectRefused(Input(R"("name":"x","shape":[4,1],"datatype":"FP32","data":[[1,2],[3,4]])"),
                {"\"x\"", "[2,2]", "[4,1]"});
  ExpectRefused(Input(R"("name":"x","shape":[2],"datatype":"FP32","data":["a",1])"),
                {"\"x\"", "a number"});
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[0],"datatype":"FP32","data":[]},
                              {"name":"x","shape":[0],"datatype":"FP32","data":[]}]})",
                {"\"x\"", "twice"});
  ExpectRefused(R"({"inputs":[],"parameters":{"signature_name":1}})", {"signature_name"});
  ExpectRefused(R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":2}}]})",
                {"\"y\"", "classification"});
  ExpectRefused(R"({"inputs":[],"id":5})", {"\"id\""});
}

TEST(InferJsonTest, HalvesHaveNoFormInJson) {
  const Parsed parsed = Read(Input(R"("name":"x","shape":[1],"datatype":"FP16","data":[1])"));
  EXPECT_EQ(parsed.status.code, StatusCode::kUnimplemented);
  EXPECT_THAT(parsed.status.message, HasSubstr("\"x\""));
}

TEST(InferJsonTest, RefusesMoreInputsThanAllowed) {
  const std::string input = R"({"name":"x","shape":[0],"datatype":"FP32","data":[]})";
  const Parsed parsed = Read("{\"inputs\":[" + input + ",{\"name\":\"y\",\"shape\":[0]," +
                             "\"datatype\":\"FP32\",\"data\":[]},{\"name\":\"z\",\"shape\":[0]," +
                             "\"datatype\":\"FP32\",\"data\":[]},{}]}");
  EXPECT_EQ(parsed.status.code, StatusCode::kResourceExhausted) << parsed.status.message;
}

// Missing values are never invented.
TEST(InferJsonTest, DamagedRequestsAreRefusedOrHaveAllValues) {
  const std::string json =
      R"({"id":"7","parameters":{"signature_name":"s"},"inputs":[{"name":"a","shape":[2],)"
      R"("datatype":"INT64","parameters":{"binary_data_size":16}},{"name":"b","shape":[2,1],)"
      R"("datatype":"FP32","data":[[0.5],[1]]},{"name":"c","shape":[1],"datatype":"BYTES",)"
      R"("parameters":{"binary_data_size":6}}],"outputs":[{"name":"y"}]})";
  const std::string body = json + Raw<int64_t>({-1, 5}) + "\x02\0\0\0ab"s;
  for (size_t i = 0; i < body.size(); ++i) {
    for (const int flip : {0, 1, 2, 4, 8, 16, 32, 64, 128}) {  // 0 truncates instead
      std::string damaged = flip == 0 ? body.substr(0, i) : body;
      if (flip != 0) damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const size_t length = std::min(json.size(), damaged.size());
      Parsed parsed = Read(damaged.substr(0, length), damaged.substr(length), true);
      if (!parsed.status.ok()) continue;
      for (const Column& column : parsed.request().columns()) {
        int64_t count = 0;
        ASSERT_TRUE(ElementCount(column, &count).ok()) << damaged;
        const int64_t bytes = static_cast<int64_t>(column.values.tensor_content.size());
        EXPECT_EQ(column.dtype == DT_STRING ? column.values.count
                                            : bytes / int64_t(ElementSize(column.dtype)),
                  count)
            << damaged;
      }
    }
  }
}

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

Response Write(const Parsed& parsed, const std::vector<OutputColumn>& outputs,
               const Status& expected = OkStatus()) {
  PredictResponse answer;
  answer.model_name = "m";
  answer.version = 3;
  answer.outputs = outputs;
  Response response;
  const Status status = parsed.json->Write(answer, &response);
  EXPECT_EQ(status.code, expected.code) << status.message;
  return response;
}

TEST(InferJsonTest, WritesJson) {
  const Parsed parsed = Read(R"({"id":"a\"b","inputs":[]})");
  const std::vector<float> scores = {0.5, -2};
  const std::vector<std::string> tags = {"x", "y"};
  const std::vector<int64_t> dims = {2}, rows = {2, 1};
  const Response response = Write(parsed, {{"score", DT_FLOAT, rows, scores.data(), nullptr},
                                           {"tag", DT_STRING, dims, tags.data(), StringAt}});
  EXPECT_EQ(response.body, R"({"model_name":"m","model_version":"3","id":"a\"b","outputs":[)"
                           R"({"name":"score","datatype":"FP32","shape":[2,1],"data":[0.5,-2.0]},)"
                           R"({"name":"tag","datatype":"BYTES","shape":[2],"data":["x","y"]}]})");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_TRUE(response.headers.empty());
}

TEST(InferJsonTest, WritesBinaryDataWhereItIsWanted) {
  const Parsed parsed = Read(R"({"inputs":[],"parameters":{"binary_data_output":true},
      "outputs":[{"name":"score"},{"name":"tag","parameters":{"binary_data":false}}]})");
  const std::vector<float> scores = {0.5};
  const std::vector<std::string> tags = {"x"};
  const std::vector<int64_t> dims = {1};
  const Response response = Write(parsed, {{"score", DT_FLOAT, dims, scores.data(), nullptr},
                                           {"tag", DT_STRING, dims, tags.data(), StringAt}});
  const std::string json =
      R"({"model_name":"m","model_version":"3","outputs":[)"
      R"({"name":"score","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},)"
      R"({"name":"tag","datatype":"BYTES","shape":[1],"data":["x"]}]})";
  EXPECT_EQ(response.body, json + Raw(scores));
  EXPECT_EQ(response.content_type, "application/octet-stream");
  EXPECT_THAT(response.headers,
              ElementsAre(testing::Pair(kInferHeaderLength, std::to_string(json.size()))));
}

TEST(InferJsonTest, WhatJsonCannotHoldIsRefused) {
  const Parsed parsed = Read(R"({"inputs":[]})");
  const std::vector<std::string> bytes = {"\xff"};
  const std::vector<uint16_t> halves = {0x3c00};
  const std::vector<int64_t> dims = {1};
  Write(parsed, {{"tag", DT_STRING, dims, bytes.data(), StringAt}}, InvalidArgument(""));
  Write(parsed, {{"half", DT_HALF, dims, halves.data(), nullptr}}, InvalidArgument(""));
}

}  // namespace
}  // namespace colcast::http
