#include "server/rest/example_json.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/example/example.pb.h"

namespace colcast::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Parsed {
  explicit Parsed(const std::string& text, int64_t max_examples = 100) {
    status = json.Read(text, max_examples);
  }

  ExamplesJson json{nullptr};
  const ExampleInput& input = json.input();
  Status status;
};

// The Example in protobuf's text format.
std::string TextOf(const std::string& bytes) {
  tensorflow::Example example;
  EXPECT_TRUE(example.ParseFromString(bytes));
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(example, &text);
  return text;
}

std::vector<std::string> TextsOf(const std::string& json) {
  const Parsed parsed(json);
  EXPECT_TRUE(parsed.status.ok()) << parsed.status.message;
  std::vector<std::string> texts;
  for (const Bytes& example : parsed.input.examples) texts.push_back(TextOf(example.ToString()));
  return texts;
}

std::string Feature(const std::string& list) {
  return "features { feature { key: \"f\" value { " + list + " } } } ";
}

TEST(ExampleJson, AFeaturesValuesDetermineItsKind) {
  const struct {
    const char* values;
    const char* list;
  } kCases[] = {
      {"1", "int64_list { value: 1 }"},
      {"[-1, true, false, 9223372036854775807]",
       "int64_list { value: -1 value: 1 value: 0 value: 9223372036854775807 }"},
      {"1.5", "float_list { value: 1.5 }"},
      {"[1.0, -2e3, Infinity]", "float_list { value: 1 value: -2000 value: inf }"},
      {"\"a\"", "bytes_list { value: \"a\" }"},
      {R"(["", {"b64": "AP8="}])", R"(bytes_list { value: "" value: "\000\377" })"},
  };
  for (const auto& [values, list] : kCases) {
    EXPECT_THAT(TextsOf(std::string(R"({"examples": [{"f": )") + values + "}]}"),
                ElementsAre(Feature(list)));
  }
}

TEST(ExampleJson, EachExampleIsSeparateAndAFeatureWithoutValuesHasNoKind) {
  EXPECT_THAT(TextsOf(R"({"examples": [{"f": 1}, {}, {"f": "x"}, {"f": []}]})"),
              ElementsAre(Feature("int64_list { value: 1 }"), "features { } ",
                          Feature("bytes_list { value: \"x\" }"),
                          "features { feature { key: \"f\" value { } } } "));
}

TEST(ExampleJson, TheContextIsReadAsAnExample) {
  const Parsed parsed(R"({"context": {"f": 1}, "examples": [{}]})");
  ASSERT_TRUE(parsed.status.ok());
  EXPECT_EQ(TextOf(parsed.input.context), Feature("int64_list { value: 1 }"));
  EXPECT_EQ(parsed.input.examples.size(), 1u);
  EXPECT_THAT(Parsed(R"({"examples": [{"f": 1}]})").input.context, IsEmpty());
}

TEST(ExampleJson, AnExampleMayConsistOfAFeatureNamedB64) {
  EXPECT_THAT(TextsOf(R"({"examples": [{"b64": "YQ=="}]})"),
              ElementsAre("features { feature { key: \"b64\" value { bytes_list { value: "
                          "\"YQ==\" } } } } "));
}

TEST(ExampleJson, ErrorsNameExampleFeatureAndValue) {
  const struct {
    const char* json;
    const char* error;
  } kCases[] = {
      {"{}", "Missing 'examples' key"},
      {R"({"examples": 1})", "\"examples\" is the number 1, expected a list of objects"},
      {R"({"examples": []})", "\"examples\" is an empty list"},
      {R"({"examples": [[1], {"f": null}]})",
       "examples[0] is a list of 1, expected an object of features"},
      {R"({"examples": [{"f": {"g": 1, "h": [2]}}]})",
       "examples[0]: feature \"f\": an object of 2 cannot be a value, expected a number, a string "
       "or {\"b64\": \"...\"}"},
      {R"({"examples": [{}, 1]})", "examples[1] is the number 1, expected an object of features"},
      {R"({"context": 1, "examples": [{}]})",
       "\"context\" is the number 1, expected an object of features"},
      {R"({"examples": [{"f": 1, "f": 2}]})", "examples[0]: feature \"f\" appears twice"},
      {R"({"examples": [{"f": [1, "a"]}]})",
       "examples[0]: feature \"f\"[1]: the string \"a\" is of a different kind than the values "
       "before it"},
      {R"({"examples": [{"f": [1, 1.5]}]})",
       "examples[0]: feature \"f\"[1]: the number 1.5 is of a different kind than the values "
       "before it"},
      {R"({"examples": [{"f": null}]})",
       "examples[0]: feature \"f\": null cannot be a value, expected a number, a string or "
       "{\"b64\": \"...\"}"},
      {R"({"examples": [{"f": 1e39}]})",
       "examples[0]: feature \"f\": the number 1e39 is too large for a float"},
      {R"({"examples": [{"f": 9223372036854775808}]})",
       "examples[0]: feature \"f\": the number 9223372036854775808 does not fit an int64"},
      {R"({"examples": [{"f": {"b64": "?"}}]})",
       "examples[0]: feature \"f\": an object of 1 is not base64"},
      {"{\"examples\": [{\"\xFF\": 1}]}", "examples[0]: a feature's name is not UTF-8"},
  };
  for (const auto& [json, error] : kCases) {
    const Parsed parsed(json);
    EXPECT_EQ(parsed.status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(parsed.status.message, error);
  }
}

TEST(ExampleJson, ReadingAgainReplacesTheFirstRequest) {
  ExamplesJson json(nullptr);
  EXPECT_FALSE(json.Read(R"({"examples": [{"f": 1}, {"f": )", 100).ok());
  ASSERT_TRUE(json.Read(R"({"examples": [{}]})", 100).ok());
  ASSERT_EQ(json.input().examples.size(), 1u);
  EXPECT_EQ(TextOf(json.input().examples[0].ToString()), "features { } ");
}

TEST(ExampleJson, MemoryIsCountedAndReturned) {
  net::MemoryLimit limit(100'000);
  {
    RequestMemory memory(&limit);
    ExamplesJson json(&memory);
    const auto text = [](int values) {
      std::string list;
      for (int i = 0; i < values; ++i) list += R"("",)";
      return R"({"examples": [{"f": [)" + list + R"(""]}]})";
    };
    ASSERT_TRUE(json.Read(text(1000), 100).ok());
    EXPECT_THROW(static_cast<void>(json.Read(text(10'000), 100)), OverMemoryLimit);
  }
  EXPECT_EQ(limit.bytes(), 0u);
}

TEST(ExampleJson, MoreExamplesThanAllowedAreRefused) {
  const Parsed parsed(R"({"examples": [{}, {}, {}, and no more is read)", 2);
  EXPECT_EQ(parsed.status.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(parsed.status.message, "\"examples\" has more rows than max_request_rows, which is 2");
}

}  // namespace
}  // namespace colcast::http
