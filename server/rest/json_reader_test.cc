#include "server/rest/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace colcast::http {
namespace {

using std::string_literals::operator""s;

// Reads the member "v" and returns its description.
class Described final : public MembersReader {
 public:
  std::string text() const { return value_.status().message; }

 private:
  class Refused final : public ValueReader {
    void OnValue(const JsonValue& value) override { FailAt("", value, ""); }
  };
  ValueReader* ReaderOf(std::string_view name) override { return name == "v" ? &value_ : nullptr; }

  Refused value_;
};

std::string ErrorOf(const std::string& text) {
  Described reader;
  const Status status = ReadJson(text, nullptr, &reader);
  return status.ok() ? reader.status().message : status.message;
}

TEST(ReadJson, SkipsAByteOrderMarkAndTrailingNuls) {
  for (const std::string& text :
       {"{}"s, "\xEF\xBB\xBF{}"s, "{}\0"s, "{} \0\0"s, "\xEF\xBB\xBF {}\0"s}) {
    EXPECT_EQ(ErrorOf(text), "");
  }
}

TEST(ReadJson, ErrorsNameTheByte) {
  const struct {
    std::string text;
    const char* error;
  } kCases[] = {
      {"", "JSON Parse error: The document is empty"},
      {"\0"s, "JSON Parse error: The document is empty. at offset: 0"},
      {"{}\0{}"s, "JSON Parse error: Invalid value. at offset: 2"},
      {"{\"a\": \0 1}"s, "JSON Parse error: Invalid value. at offset: 6"},
      {"\xEF\xBB\xBF{]", "JSON Parse error: Missing a name for object member. at offset: 4"},
      {"\xEF\xBB{}", "JSON Parse error: Invalid value. at offset: 0"},
      {"{} {}",
       "JSON Parse error: The document root must not be followed by other values. at offset: 3"},
      {"[]", "the body is a list of 0, expected a JSON object"},
      {"1e999", "JSON Parse error: Number too big to be stored in double. at offset: 0"},
  };
  for (const auto& [text, error] : kCases) EXPECT_EQ(ErrorOf(text), error) << text;
}

TEST(ReadJson, MemoryForNestingIsLimited) {
  net::MemoryLimit limit(2 << 20);
  RequestMemory memory(&limit);
  const std::string text(10 << 20, '[');
  Described reader;
  EXPECT_EQ(ReadJson(text, &memory, &reader).message,
            "JSON Parse error: Nested deeper than 100000. at offset: 100000");
}

TEST(Describe, QuotedValuesAreShortened) {
  const struct {
    const char* value;
    const char* description;
  } kCases[] = {
      {"null", "null"},
      {"true", "true"},
      {"1.5", "the number 1.5"},
      {"1e3", "the number 1e3"},
      {"18446744073709551615", "the number 18446744073709551615"},
      {"-Infinity", "the number -Infinity"},
      {"\"a\"", "the string \"a\""},
      {"[1, [2]]", "a list of 2"},
      {"{\"a\": 1}", "an object of 1"},
      {"\"\xFF\"", "a string that is not UTF-8"},
      {R"("a\"b")", "the string \"a\"b\""},
      {R"("\u0041b\/c")", "the string \"Ab/c\""},
      {R"("\\")", "the string \"\\\""},
  };
  for (const auto& [value, description] : kCases) {
    const std::string text = "{\"\\u0076\": " + std::string(value) + "}";
    Described reader;
    ASSERT_TRUE(ReadJson(text, nullptr, &reader).ok()) << value;
    EXPECT_EQ(reader.text(), description);
  }
}

}  // namespace
}  // namespace colcast::http
