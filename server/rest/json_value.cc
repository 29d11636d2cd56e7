#include "server/rest/json_value.h"

#include <absl/strings/escaping.h>

#include "server/base/text.h"
#include "server/wire/data_type.h"

namespace colcast::http {

namespace {

constexpr size_t kMostDigits = 60;  // of a number in a message

}  // namespace

std::string Describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return value.truth ? "true" : "false";
    case JsonValue::Kind::kInt64:
      return "the number " + std::to_string(value.whole);
    case JsonValue::Kind::kUint64:
      return "the number " + std::to_string(value.large);
    case JsonValue::Kind::kDouble:
      return "the number " + Readable(value.text.substr(0, kMostDigits));
    case JsonValue::Kind::kString:
      return IsValidUtf8(value.text) ? "the string " + Quoted(value.text)
                                     : "a string that is not UTF-8";
    case JsonValue::Kind::kBase64:
      return "an object of 1";
    case JsonValue::Kind::kList:
      return "a list of " + std::to_string(value.count);
    case JsonValue::Kind::kObject:
      return "an object of " + std::to_string(value.count);
  }
  return "";
}

bool DecodeBase64(const JsonValue& value, std::string* bytes) {
  return absl::Base64Unescape({value.text.data(), value.text.size()}, bytes);
}

}  // namespace colcast::http
