// One value of a request's JSON, passed to readers during parsing.
#ifndef COLCAST_SERVER_HTTP_JSON_VALUE_H_
#define COLCAST_SERVER_HTTP_JSON_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace colcast::http {

struct JsonValue {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInt64,   // integers that fit
    kUint64,  // larger integers
    kDouble,  // other numbers
    kString,
    kBase64,  // exactly {"b64": "..."}; `text` is the encoded string
    kList,
    kObject,
  };

  bool IsContainer() const { return kind == Kind::kList || kind == Kind::kObject; }
  bool IsNumber() const { return kind >= Kind::kInt64 && kind <= Kind::kDouble; }

  Kind kind = Kind::kNull;
  union {
    bool truth;
    int64_t whole = 0;
    uint64_t large;
    double real;
    size_t count;  // number of elements in a list or object; valid when it has ended
  };
  std::string_view text;  // of a string; invalid after the reader returns
};

inline JsonValue JsonString(std::string_view text) {
  JsonValue value;
  value.kind = JsonValue::Kind::kString;
  value.text = text;
  return value;
}

// A description for error messages, at most one line: the string "x", a list of 3.
std::string Describe(const JsonValue& value);

// REQUIRES kBase64. False if it is not base64; padding may be missing.
bool DecodeBase64(const JsonValue& value, std::string* bytes);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_JSON_VALUE_H_
