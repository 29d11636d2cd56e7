#include "server/rest/json_column.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/rest/json_reader.h"
#include "server/wire/column.h"

namespace colcast::http {
namespace {

// A column "x" read from consecutive values of a list.
class Parsed final : private ValueReader {
 public:
  Parsed(DataType dtype, const std::string& values) : column_("x", dtype, nullptr) {
    const std::string text = '[' + values + ']';
    status_ = ReadJson(text, nullptr, this);
    if (status_.ok()) status_ = ValueReader::status();
    if (status_.ok()) {
      column_.MoveTo(rows_, &content_, request_.AddColumn("x"));
    }
  }

  const Status& status() const { return status_; }
  const Column& column() const { return request_.columns()[0]; }

 private:
  void OnValue(const JsonValue& value) override {
    if (depth() == 0) return;
    column_.Value(value);
    if (column_.done()) Finish();
  }
  void OnEnd(size_t count) override {
    if (depth() == 0) {
      rows_ = static_cast<int64_t>(count);
      return;
    }
    column_.End(count);
    if (column_.done()) Finish();
  }
  void Finish() {
    if (!column_.status().ok()) Fail(column_.status());
  }

  JsonColumn column_;
  CountedBytes content_;
  int64_t rows_ = 0;
  DecodedRequest request_;
  Status status_;
};

template <typename T>
std::vector<T> Elements(DataType dtype, const std::string& values) {
  const Parsed parsed(dtype, values);
  EXPECT_TRUE(parsed.status().ok()) << parsed.status().message;
  if (!parsed.status().ok()) return {};
  const Bytes& content = parsed.column().values.tensor_content;
  std::vector<T> elements(content.size() / sizeof(T));
  content.CopyTo(elements.data());
  return elements;
}

std::string ErrorOf(DataType dtype, const std::string& values) {
  return Parsed(dtype, values).status().message;
}

TEST(JsonColumn, NestedListsBecomeOneTensor) {
  const Parsed parsed(DT_INT32, "[[1, 2], [3, 4], [5, 6]]");
  ASSERT_TRUE(parsed.status().ok());
  EXPECT_EQ(parsed.column().dims, (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(parsed.column().dtype, DT_INT32);
}

TEST(JsonColumn, FloatsAcceptAnyNumber) {
  const std::vector<float> floats = Elements<float>(DT_FLOAT, "1, 2.5, -3e2, 16777217, Infinity");
  EXPECT_EQ(floats,
            (std::vector<float>{1, 2.5, -300, 16777216, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(std::isnan(Elements<double>(DT_DOUBLE, "NaN")[0]));
  EXPECT_EQ(Elements<double>(DT_DOUBLE, "0.1, 1e300"), (std::vector<double>{0.1, 1e300}));
}

TEST(JsonColumn, NumbersAreRoundedToTheNearestDouble) {
  EXPECT_EQ(Elements<double>(DT_DOUBLE, "0e300, 1e-999, -0.0, 5e-324, 9007199254740993.0"),
            (std::vector<double>{0, 0, 0, 5e-324, 9007199254740992}));
  EXPECT_EQ(Elements<double>(DT_DOUBLE, "1.00000000000000011102230246251565404236316680908203124"),
            (std::vector<double>{1}));
  EXPECT_EQ(ErrorOf(DT_DOUBLE, "1, -1e999"),
            "JSON Parse error: Number too big to be stored in double. at offset: 4");
  EXPECT_EQ(ErrorOf(DT_DOUBLE, std::string(400, '9')),
            "JSON Parse error: Number too big to be stored in double. at offset: 1");
}

TEST(JsonColumn, IntegersKeepAllBits) {
  EXPECT_EQ(Elements<int64_t>(DT_INT64, "9223372036854775807, -9223372036854775808"),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(Elements<uint64_t>(DT_UINT64, "18446744073709551615"),
            (std::vector<uint64_t>{UINT64_MAX}));
  EXPECT_EQ(Elements<int8_t>(DT_INT8, "-128, 127"), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(Elements<uint8_t>(DT_UINT8, "0, 255"), (std::vector<uint8_t>{0, 255}));
}

TEST(JsonColumn, ErrorsNameNumbersOutsideTheRange) {
  EXPECT_EQ(ErrorOf(DT_INT32, "1, 2147483648"),
            "input \"x\" (DT_INT32): the number 2147483648, expected a whole number from "
            "-2147483648 to 2147483647");
  EXPECT_EQ(ErrorOf(DT_UINT8, "-1"),
            "input \"x\" (DT_UINT8): the number -1, expected a whole number from 0 to 255");
  EXPECT_EQ(ErrorOf(DT_INT64, "1.0"),
            "input \"x\" (DT_INT64): the number 1.0, expected a whole number from "
            "-9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(ErrorOf(DT_FLOAT, "1e39"),
            "input \"x\" (DT_FLOAT): the number 1e39, expected at most 3.4e38 in magnitude");
}

TEST(JsonColumn, StringsAreTextOrBase64) {
  const auto strings_of = [](const std::string& json) {
    const Parsed parsed(DT_STRING, json);
    EXPECT_TRUE(parsed.status().ok()) << json;
    std::vector<std::string> strings;
    ForEachRecord(parsed.column().values, ValueField::kString,
                  [&](const Bytes& value) { strings.push_back(value.ToString()); });
    return strings;
  };
  EXPECT_EQ(strings_of(R"("caf\u00e9", {"b64": "AP8="}, {"b64": "AP8"}, "")"),
            (std::vector<std::string>{"caf\xC3\xA9", std::string("\0\xFF", 2),
                                      std::string("\0\xFF", 2), ""}));
  // TensorFlow Serving accepts line breaks, as `base64` writes them, and leftover bits.
  for (const char* const a :
       {R"({"b64": "YQ=="})", R"({"b64": "Y\nQ==\r\n"})", R"({"b64": "YR=="})"}) {
    EXPECT_EQ(strings_of(a), std::vector<std::string>{"a"}) << a;
  }
  EXPECT_EQ(ErrorOf(DT_STRING, R"({"b64": "?"})"),
            "input \"x\" (DT_STRING): the string \"?\", expected base64");
  EXPECT_EQ(ErrorOf(DT_STRING, "1"),
            "input \"x\" (DT_STRING): the number 1, expected a string or {\"b64\": \"...\"}");
}

TEST(JsonColumn, ErrorsNameValuesOfTheWrongType) {
  EXPECT_EQ(ErrorOf(DT_FLOAT, "null"), "input \"x\" (DT_FLOAT): null, expected a number");
  EXPECT_EQ(ErrorOf(DT_BOOL, "1"), "input \"x\" (DT_BOOL): the number 1, expected true or false");
  EXPECT_EQ(ErrorOf(DT_FLOAT, "[0, [\"a\"]]"),
            "input \"x\"[1] (DT_FLOAT): a list of 1, expected a single value, like the first one");
}

TEST(JsonColumn, ErrorsNameThePlaceOfARaggedList) {
  EXPECT_EQ(ErrorOf(DT_INT32, "[[1, 2], [3]]"),
            "input \"x\"[1] (DT_INT32): a list of 1, expected a list of 2, like the first one");
  EXPECT_EQ(ErrorOf(DT_INT32, "[1], 2"),
            "input \"x\" (DT_INT32): the number 2, expected a list of 1, like the first one");
}

TEST(JsonColumn, NestingIsLimited) {
  EXPECT_EQ(ErrorOf(DT_INT32, std::string(255, '[') + std::string(255, ']')),
            "input \"x\": lists nested deeper than 254");
}

TEST(JsonColumn, ADtypeThatJsonLacksIsUnimplemented) {
  const Status status = Parsed(DT_COMPLEX64, "1").status();
  EXPECT_EQ(status.code, StatusCode::kUnimplemented);
  EXPECT_EQ(status.message,
            "input \"x\": DT_COMPLEX64 cannot be represented in JSON; send it over gRPC");
}

}  // namespace
}  // namespace colcast::http
