#include "server/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace colcast {
namespace {

TEST(Utf8Test, AcceptsCharactersOfEverySize) {
  for (const char* text :
       {"", "plain", "more than eight plain bytes", "Z\xc3\xbcrich", "\xe2\x82\xac",
        "\xf0\x9f\x8e\xac", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesInvalidSequences) {
  for (const char* text : {
           "\x80",              // continuation byte without a start
           "\xc3",              // truncated
           "\xe2\x82",          // truncated
           "\xc3(",             // missing continuation byte
           "\xc0\x80",          // overlong
           "\xe0\x9f\xbf",      // overlong
           "\xf0\x8f\xbf\xbf",  // overlong
           "\xed\xa0\x80",      // surrogate
           "\xf4\x90\x80\x80",  // above U+10FFFF
           "\xf5\x80\x80\x80",  // above U+10FFFF
           "\xff",
       }) {
    for (const char* before : {"", "1234567", "12345678"}) {
      EXPECT_FALSE(IsValidUtf8(std::string(before) + text)) << text;
    }
  }
}

TEST(ReadHexTest, ReadsPairsOfLowerCaseDigits) {
  std::string bytes;
  EXPECT_TRUE(ReadHex("00ff7a", &bytes));
  EXPECT_EQ(bytes, std::string("\0\xff\x7a", 3));
  for (const char* const wrong : {"0", "0g", "FF", "0x", " 1"})
    EXPECT_FALSE(ReadHex(wrong, &bytes));
}

TEST(PercentDecodeTest, APercentSignWithoutDigitsStays) {
  EXPECT_EQ(PercentDecode("%4"), "%4");
  EXPECT_EQ(PercentDecode("%"), "%");
  EXPECT_EQ(PercentDecode("%zz%e9"), "%zz\xe9");
}

template <typename Float>
std::string Decimal(Float value) {
  std::string json;
  AppendJsonDecimal(value, &json);
  return json;
}

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

TEST(JsonText, DecimalsAreShortAndHaveAPointOrAnExponent) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Decimal(0.1f), "0.1");
  EXPECT_EQ(Decimal(1e-45f), "1e-45");
  EXPECT_EQ(Decimal(16777216.0f), "16777216.0");
  EXPECT_EQ(Decimal(std::nanf("")), "NaN");
  for (const auto& [value, text] : {std::pair(0.1, "0.1"),
                                    {1e300, "1e+300"},
                                    {-0.0, "-0.0"},
                                    {kInfinity, "Infinity"},
                                    {-kInfinity, "-Infinity"}}) {
    EXPECT_EQ(Decimal(value), text);
  }
}

TEST(JsonText, FloatsSurviveARoundTrip) {
  uint32_t bits = 1;
  for (int i = 0; i < 100000; ++i) {
    bits = bits * 1664525 + 1013904223;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtof(Decimal(value).c_str(), nullptr), value) << bits;
  }
}

TEST(JsonText, StringsAreEscapedAsJsonRequires) {
  EXPECT_EQ(Quoted("caf\xC3\xA9"), "\"caf\xC3\xA9\"");
  EXPECT_EQ(Quoted("a\"b\\c\n\t\b\f\r"), R"("a\"b\\c\n\t\b\f\r")");
  EXPECT_EQ(Quoted(std::string_view("\0\x1F", 2)), R"("\u0000\u001F")");
  EXPECT_EQ(Quoted(""), R"("")");
}

TEST(JsonText, QuotingEscapesTextAndReplacesInvalidUtf8) {
  EXPECT_EQ(JsonQuoted("a \"b\" \\ c\nd\x01"), "\"a \\\"b\\\" \\\\ c\\nd\\u0001\"");
  EXPECT_EQ(JsonQuoted("\xc3\xa9\xf0\x9f\x8e\xac"), "\"\xc3\xa9\xf0\x9f\x8e\xac\"");
  EXPECT_EQ(JsonQuoted("a\xff z\xc3"), "\"a\xef\xbf\xbd z\xef\xbf\xbd\"");
}

TEST(JsonWriterTest, ObjectsAndListsNest) {
  JsonWriter json;
  json.Object([&] {
    json.Add({{"text", "a\"\n"},
              {"whole", int64_t{-3}},
              {"real", 0.25},
              {"none", nullptr},
              {"yes", true}});
    json.List("list", [&] {
      json.Add(int64_t{1});
      json.Object({{"a", "b"}});
    });
    json.Object("object", [] {});
  });
  EXPECT_EQ(
      json.text(),
      R"({"text":"a\"\n","whole":-3,"real":0.25,"none":null,"yes":true,"list":[1,{"a":"b"}],"object":{}})");
}

TEST(JsonWriterTest, NonFiniteNumbersAreStringsAndInvalidUtf8IsReplaced) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  JsonWriter json;
  json.Object({{"a", kInfinity},
               {"b", -kInfinity},
               {"c", std::numeric_limits<double>::quiet_NaN()},
               {"d", "\xff"}});
  EXPECT_EQ(json.text(), "{\"a\":\"Infinity\",\"b\":\"-Infinity\",\"c\":\"NaN\",\"d\":\"\uFFFD\"}");
}

}  // namespace
}  // namespace colcast
