#include "server/rest/predict_json.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "server/base/text.h"
#include "server/wire/data_type.h"
#include "server/wire/testing.h"

namespace colcast::http {
namespace {

using tensorflow::SignatureDef;

// Inputs "age" (int64), "name" (string) and "score" (float), which has a default.
SignatureDef MakeSignature() {
  SignatureDef signature;
  (*signature.mutable_inputs())["age"].set_dtype(tensorflow::DT_INT64);
  (*signature.mutable_inputs())["name"].set_dtype(tensorflow::DT_STRING);
  (*signature.mutable_inputs())["score"].set_dtype(tensorflow::DT_FLOAT);
  (*signature.mutable_defaults())["score"];
  return signature;
}

SignatureDef OneInput(DataType dtype) {
  SignatureDef signature;
  (*signature.mutable_inputs())["x"].set_dtype(static_cast<tensorflow::DataType>(dtype));
  return signature;
}

// name:DTYPE[shape]=elements
std::string Show(const Column& column) {
  std::string text =
      std::string(column.name) + ':' + DataTypeName(column.dtype) + ShapeName(column.dims) + '=';
  if (column.dtype == DT_STRING) {
    for (const std::string& value : StringsOf(column)) text += value + ';';
    return text;
  }
  const std::string content = column.values.tensor_content.ToString();
  for (size_t at = 0; at < content.size(); at += ElementSize(column.dtype)) {
    int64_t whole = 0;
    float real = 0;
    if (column.dtype == DT_FLOAT) {
      std::memcpy(&real, content.data() + at, sizeof(real));
      AppendJsonDecimal(real, &text);
    } else {
      std::memcpy(&whole, content.data() + at, sizeof(whole));
      text += std::to_string(whole);
    }
    text += ';';
  }
  return text;
}

struct Parsed {
  // The only signature, "s", is also the default.
  Parsed(const std::string& text, const SignatureDef& signature) {
    const auto find = [&](const std::string& name, const SignatureDef** found) {
      asked_for.push_back(name);
      *found = &signature;
      return name.empty() || name == "s" ? OkStatus() : InvalidArgument("no signature ", name);
    };
    status = json.Read(text, 1'000, find);
  }

  std::string ToString() const {
    if (!status.ok()) return status.message;
    std::string shown = json.format() == JsonFormat::kRows ? "rows" : "columns";
    for (const Column& column : json.request().columns()) shown += ' ' + Show(column);
    return shown;
  }

  PredictJson json{nullptr};
  std::vector<std::string> asked_for;
  Status status;
};

struct Case {
  const char* json;
  const char* expected;
};

TEST(ReadInputs, FillsColumns) {
  const Case kCases[] = {
      {R"({"inputs": {"age": [3], "name": ["a", "b"]}})",
       "columns age:DT_INT64[1]=3; name:DT_STRING[2]=a;b;"},
      {R"({"inputs": {"name": "a", "score": [[0.5, 1]], "age": []}})",
       "columns name:DT_STRING[]=a; score:DT_FLOAT[1,2]=0.5;1.0; age:DT_INT64[0]="},
      {R"({"instances": [{"age": 1, "name": "a"}, {"name": {"b64": "Yg=="}, "age": 2}]})",
       "rows age:DT_INT64[2]=1;2; name:DT_STRING[2]=a;b;"},
      {R"({"instances": [{"name": "", "age": [7, 8], "score": 2}]})",
       "rows name:DT_STRING[1]=; age:DT_INT64[1,2]=7;8; score:DT_FLOAT[1]=2.0;"},
  };
  for (const auto& [json, expected] : kCases) {
    EXPECT_EQ(Parsed(json, MakeSignature()).ToString(), expected) << json;
  }
}

TEST(ReadInputs, AbsentInputsAreLeftToTheEngine) {
  for (const char* const json : {"{}", R"({"inputs": {}})"}) {
    EXPECT_EQ(Parsed(json, SignatureDef()).ToString(), "columns");
  }
  EXPECT_EQ(Parsed(R"({"inputs": {"name": "a"}})", MakeSignature()).ToString(),
            "columns name:DT_STRING[]=a;");
}

TEST(ReadInputs, ASignatureWithoutInputsTakesNoValue) {
  EXPECT_EQ(Parsed(R"({"inputs": [1]})", SignatureDef()).ToString(),
            "\"inputs\" is a list of 1, expected an object with the signature's inputs none");
}

// The text after the limit is malformed, but not read.
TEST(ReadInputs, TooManyInstancesAreRefusedImmediately) {
  const SignatureDef signature = OneInput(DT_INT64);
  const auto find = [&](const std::string&, const SignatureDef** found) {
    *found = &signature;
    return OkStatus();
  };
  PredictJson json(nullptr);
  for (const char* const text :
       {R"({"instances": [1, 2, 3, 4, no JSON)", R"({"instances": [[1], [2], [3], [no)",
        R"({"instances": [{"x": 1}, {"x": 2}, {"x": 3}, {"x": no)"}) {
    const Status status = json.Read(text, 3, find);
    EXPECT_EQ(status.code, StatusCode::kResourceExhausted) << text;
    EXPECT_EQ(status.message, "\"instances\" has more rows than max_request_rows, which is 3");
  }
  EXPECT_TRUE(json.Read(R"({"instances": [1, 2, 3]})", 3, find).ok());
}

TEST(ReadInputs, TheOnlyInputNeedsNoName) {
  const Case kCases[] = {
      {R"({"inputs": [1, 2]})", "columns x:DT_INT64[2]=1;2;"},
      {R"({"inputs": 1})", "columns x:DT_INT64[]=1;"},
      {R"({"inputs": {"x": [1]}})", "columns x:DT_INT64[1]=1;"},
      {R"({"instances": [1, 2]})", "rows x:DT_INT64[2]=1;2;"},
      {R"({"instances": [[1], [2]]})", "rows x:DT_INT64[2,1]=1;2;"},
      {R"({"instances": [{"x": 1}]})", "rows x:DT_INT64[1]=1;"},
  };
  for (const auto& [json, expected] : kCases) {
    EXPECT_EQ(Parsed(json, OneInput(DT_INT64)).ToString(), expected) << json;
  }
  EXPECT_EQ(Parsed(R"({"inputs": {"b64": "YQ=="}})", OneInput(DT_STRING)).ToString(),
            "columns x:DT_STRING[]=a;");
}

TEST(ReadInputs, ErrorsNamePlaceAndCause) {
  const Case kCases[] = {
      {"{}", "Missing 'inputs' or 'instances' key"},
      {R"({"inputs": 1, "instances": [1]})",
       "both \"instances\" and \"inputs\": expected one of them"},
      {R"({"inputs": [1]})",
       "\"inputs\" is a list of 1, expected an object with the signature's inputs \"age\", "
       "\"name\", \"score\""},
      {R"({"inputs": {"aeg": 1}})",
       "\"inputs\": unknown input \"aeg\"; the signature's are \"age\", \"name\", \"score\""},
      {R"({"inputs": {"age": 1, "age": 2, "name": "a"}})",
       "\"inputs\": input \"age\" appears twice"},
      {R"({"instances": 1})", "\"instances\" is the number 1, expected a list of rows"},
      {R"({"instances": []})", "\"instances\" is an empty list"},
      {R"({"instances": [1]})",
       "instances[0] is the number 1, expected an object with the signature's inputs \"age\", "
       "\"name\", \"score\""},
      {R"({"instances": [{"age": 1, "name": "a"}, 1]})",
       "instances[1] is the number 1, expected an object, like the rows before it"},
      {R"({"instances": [{"age": 1, "name": "a"}, {"age": 1}]})",
       "instances[1]: no input \"name\", which instances[0] has"},
      {R"({"instances": [{"age": 1, "name": "a"}, {"age": 1, "name": "a", "score": 1}]})",
       "instances[1]: input \"score\", which instances[0] does not have"},
      {R"({"instances": [{"age": 1, "age": 1}]})", "instances[0]: input \"age\" appears twice"},
      {R"({"instances": [{"age": [1], "name": "a"}, {"age": 1, "name": "a"}]})",
       "instances[1]: input \"age\" (DT_INT64): the number 1, expected a list of 1, like the "
       "first one"},
  };
  for (const auto& [json, expected] : kCases) {
    const Parsed parsed(json, MakeSignature());
    EXPECT_EQ(parsed.ToString(), expected) << json;
    EXPECT_EQ(parsed.status.code, StatusCode::kInvalidArgument);
  }
}

TEST(ReadInputs, ADtypeThatJsonLacksFailsWithTfServingsCode) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_COMPLEX64, DT_COMPLEX128}) {
    EXPECT_EQ(Parsed(R"({"inputs": [1]})", OneInput(dtype)).status.code,
              StatusCode::kUnimplemented);
    EXPECT_EQ(Parsed(R"({"instances": [1]})", OneInput(dtype)).status.code,
              StatusCode::kInvalidArgument);
    EXPECT_EQ(Parsed(R"({"instances": [{"x": 1}]})", OneInput(dtype)).status.code,
              StatusCode::kInvalidArgument);
  }
}

TEST(ReadInputs, TheFirstErrorIsReported) {
  const Case kCases[] = {
      {R"({"inputs": {"score": [[1, 2], [3, null], [4]]}})",
       "input \"score\"[1][1] (DT_FLOAT): null, expected a number"},
      {R"({"inputs": {"score": [1, {"a": [1, {}], "b": 2}, "x"]}})",
       "input \"score\"[1] (DT_FLOAT): an object of 2, expected a number"},
      {R"({"inputs": {"score": [1, [2, 3], 4]}})",
       "input \"score\"[1] (DT_FLOAT): a list of 2, expected a single value, like the first one"},
      {R"({"inputs": {"score": [[], 1]}})",
       "input \"score\"[1] (DT_FLOAT): the number 1, expected a list of 0, like the first one"},
      // Syntax errors come first, then errors of the request, then errors in its values.
      {R"({"inputs": {"age": "x"}, "instances": [1]})",
       "both \"instances\" and \"inputs\": expected one of them"},
      {R"({"inputs": {"age": "x"}, "signature_name": 5})",
       "\"signature_name\" is the number 5, expected a string"},
      {R"({"inputs": {"age": "x"}, "signature_name": "no"})", "no signature no"},
      {R"({"inputs": {"age": "x"},})",
       "JSON Parse error: Missing a name for object member. at offset: 24"},
      {R"({"instances": [[1, 2], 3], "more": [4]})",
       "instances[0] is a list of 2, expected an object with the signature's inputs \"age\", "
       "\"name\", \"score\""},
  };
  for (const auto& [json, expected] : kCases) {
    EXPECT_EQ(Parsed(json, MakeSignature()).ToString(), expected) << json;
  }
}

TEST(ReadInputs, TheFirstOfRepeatedMembersCounts) {
  EXPECT_EQ(Parsed(R"({"inputs": [1], "inputs": "x"})", OneInput(DT_INT64)).ToString(),
            "columns x:DT_INT64[1]=1;");
}

TEST(ReadInputs, AnObjectWithOnlyB64IsAValue) {
  SignatureDef signature = OneInput(DT_STRING);
  signature.mutable_inputs()->clear();
  (*signature.mutable_inputs())["b64"].set_dtype(tensorflow::DT_STRING);
  const Case kCases[] = {
      {R"({"instances": [{"b64": "YQ=="}]})", "rows b64:DT_STRING[1]=a;"},
      {R"({"instances": [{"b64": ["YQ=="]}]})", "rows b64:DT_STRING[1,1]=YQ==;"},
      {R"({"inputs": {"b64": {"b64": "YQ=="}}})", "columns b64:DT_STRING[]=a;"},
      {R"({"instances": [{"b64": "YQ==", "c": 1}]})",
       "instances[0]: unknown input \"c\"; the signature's are \"b64\""},
      {R"({"instances": [{"b64": ["a"]}, {"b64": "YQ=="}]})",
       "instances[1] is an object of 1, expected an object, like the rows before it"},
  };
  for (const auto& [json, expected] : kCases) {
    EXPECT_EQ(Parsed(json, signature).ToString(), expected) << json;
  }
}

TEST(SignatureName, MayFollowTheInputs) {
  const Parsed parsed(R"({"inputs": [1, 2], "signature_name": "s"})", OneInput(DT_INT64));
  EXPECT_EQ(parsed.ToString(), "columns x:DT_INT64[2]=1;2;");
  EXPECT_EQ(parsed.asked_for, (std::vector<std::string>{"", "s"}));
  EXPECT_EQ(parsed.json.signature_name(), "s");
}

TEST(Memory, TheMemoryOfColumnsIsCountedAndReleased) {
  net::MemoryLimit limit(100'000);
  {
    RequestMemory memory(&limit);
    PredictJson json(&memory);
    const SignatureDef signature = OneInput(DT_INT64);
    const auto find = [&](const std::string&, const SignatureDef** found) {
      *found = &signature;
      return OkStatus();
    };
    const auto read = [&](int values) {
      std::string text = R"({"inputs": [0)";
      for (int i = 1; i < values; ++i) text += ",0";
      text += "]}";
      return json.Read(text, 1'000, find);
    };
    ASSERT_TRUE(read(5'000).ok());
    EXPECT_GE(limit.bytes(), 5'000 * sizeof(int64_t));
    EXPECT_LE(limit.bytes(), 2 * 5'000 * sizeof(int64_t));
    EXPECT_THROW(static_cast<void>(read(50'000)), OverMemoryLimit);
  }
  EXPECT_EQ(limit.bytes(), 0u);
}

}  // namespace
}  // namespace colcast::http
