#include "server/base/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "server/base/utf8.h"

namespace colcast {
namespace {

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

// Appends the escape of a character that needs one.
void AppendEscape(char c, std::string* json) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  json->push_back('\\');
  switch (c) {
    case '"':
    case '\\':
      return json->push_back(c);
    case '\b':
      return json->push_back('b');
    case '\f':
      return json->push_back('f');
    case '\n':
      return json->push_back('n');
    case '\r':
      return json->push_back('r');
    case '\t':
      return json->push_back('t');
    default:
      json->append("u00");
      json->push_back(kDigits[c >> 4]);
      json->push_back(kDigits[c & 15]);
  }
}

// The size of the UTF-8 character at the start of `text`; 0 if it is invalid.
size_t CharacterSize(std::string_view text) {
  for (size_t size = 1; size <= std::min<size_t>(4, text.size()); ++size) {
    if (IsValidUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

template <typename Float>
void AppendFloat(Float value, std::string* json) {
  if (std::isnan(value)) {
    json->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    json->append(std::signbit(value) ? "-Infinity" : "Infinity");
    return;
  }
  char text[32];
  char* const end = std::to_chars(text, text + sizeof(text), value).ptr;
  json->append(text, end);
  // Many languages would read a whole number without a point as an integer.
  const bool whole = std::none_of(text, end, [](char c) { return c == '.' || c == 'e'; });
  if (whole) json->append(".0");
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* json) {
  json->push_back('"');
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!NeedsEscape(text[i])) continue;
    json->append(text.substr(plain, i - plain));
    AppendEscape(text[i], json);
    plain = i + 1;
  }
  json->append(text.substr(plain));
  json->push_back('"');
}

std::string JsonQuoted(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    valid += size == 0 ? "\ufffd" : text.substr(0, size);
    text.remove_prefix(std::max<size_t>(1, size));
  }
  std::string json;
  AppendJsonString(valid, &json);
  return json;
}

void AppendJsonDecimal(float value, std::string* json) { AppendFloat(value, json); }
void AppendJsonDecimal(double value, std::string* json) { AppendFloat(value, json); }

}  // namespace colcast
