#include "server/wire/feature_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace colcast {
namespace {

double NumberIn(std::string_view json) {
  rapidjson::Document document;
  EXPECT_TRUE(ParseJson(json, &document)) << json;
  return document.IsNumber() ? document.GetDouble() : NAN;
}

TEST(FeatureJsonTest, ReadsEveryNumberExactly) {
  EXPECT_EQ(NumberIn("0.1"), 0.1);
  EXPECT_EQ(NumberIn("5e-324"), 5e-324);
  EXPECT_EQ(NumberIn("-1.7976931348623157e308"), -1.7976931348623157e308);
  for (const char* const zero : {"0e-30", "0.0e-30", "0.000000000000000000000000", "0E-400"}) {
    EXPECT_EQ(NumberIn(zero), 0) << zero;
  }
  EXPECT_TRUE(std::signbit(NumberIn("-0.0")));
  EXPECT_TRUE(std::isinf(NumberIn("-Infinity")));
  EXPECT_TRUE(std::isnan(NumberIn("NaN")));
}

TEST(FeatureJsonTest, IntegersKeepAllDigits) {
  rapidjson::Document document;
  ASSERT_TRUE(ParseJson("[-9223372036854775808, 18446744073709551615]", &document));
  EXPECT_EQ(document[0].GetInt64(), INT64_MIN);
  EXPECT_EQ(document[1].GetUint64(), UINT64_MAX);
}

TEST(FeatureJsonTest, RefusesInvalidJson) {
  rapidjson::Document document;
  for (const char* const text : {"", "[1,2", "01", "+1", "1 2", "1.", "1e999"}) {
    EXPECT_FALSE(ParseJson(text, &document)) << text;
  }
}

}  // namespace
}  // namespace colcast
