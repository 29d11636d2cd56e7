#include "server/http/json_document.h"

#include <gtest/gtest.h>

#include <string>

namespace colcast::http {
namespace {

using std::string_literals::operator""s;

std::string ErrorOf(std::string text) {
  rapidjson::Document document;
  return ParseObject(&text, &document).message;
}

TEST(ParseObject, PassesOverAByteOrderMarkAndNulsAtTheEnd) {
  for (const std::string& text :
       {"{}"s, "\xEF\xBB\xBF{}"s, "{}\0"s, "{} \0\0"s, "\xEF\xBB\xBF {}\0"s}) {
    EXPECT_EQ(ErrorOf(text), "");
  }
}

TEST(ParseObject, ErrorsNameTheByte) {
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

TEST(Describe, AValueIsNeverLongerThanALine) {
  const struct {
    const char* value;
    const char* description;
  } kCases[] = {
      {"null", "null"},
      {"true", "true"},
      {"1.5", "the number 1.5"},
      {"18446744073709551615", "the number 18446744073709551615"},
      {"-Infinity", "the number -Infinity"},
      {"\"a\"", "the string \"a\""},
      {"[1, [2]]", "a list of 2"},
      {"{\"a\": 1}", "an object of 1"},
      {"\"\xFF\"", "a string that is not UTF-8"},
  };
  for (const auto& [value, description] : kCases) {
    std::string text = "{\"v\": " + std::string(value) + "}";
    rapidjson::Document document;
    ASSERT_TRUE(ParseObject(&text, &document).ok()) << value;
    EXPECT_EQ(Describe(*FindMember(document, "v")), description);
  }
}

}  // namespace
}  // namespace colcast::http
