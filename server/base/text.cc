#include "server/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace colcast {

namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// Whether the next eight bytes are ASCII.
bool AreAllAscii(const uint8_t* at) {
  uint64_t bytes;
  std::memcpy(&bytes, at, sizeof(bytes));
  return (bytes & 0x8080808080808080) == 0;
}

// The size of the character at `at`, or 0 if it is invalid. REQUIRES at < end.
size_t CharacterSize(const uint8_t* at, const uint8_t* end) {
  if (*at < 0x80) return 1;
  const size_t size = *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
  if (static_cast<size_t>(end - at) < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(at[i])) return 0;
  }
  const bool overlong =
      *at < 0xc2 || (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
  const bool surrogate = *at == 0xed && at[1] >= 0xa0;
  const bool too_large = *at > 0xf4 || (*at == 0xf4 && at[1] >= 0x90);
  return overlong || surrogate || too_large ? 0 : size;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at != end) {
    if (end - at >= 8 && AreAllAscii(at)) {
      at += 8;
      continue;
    }
    const size_t size = CharacterSize(at, end);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

namespace {

// Returns -1 if the character is not a hexadecimal digit.
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

bool ReadHex(std::string_view text, std::string* bytes) {
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto is_upper = [](char c) { return c >= 'A' && c <= 'F'; };
    const int high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0 || is_upper(text[i]) || is_upper(text[i + 1])) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

std::string PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool may_be_byte = text[i] == '%' && i + 2 < text.size();
    const int high = may_be_byte ? HexDigit(text[i + 1]) : -1;
    const int low = may_be_byte ? HexDigit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      decoded += static_cast<char>(high << 4 | low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

namespace {

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

// Appends the JSON escape of a character that needs one.
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
  // In many languages, a JSON parser would turn a number without a decimal point into an integer.
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

void JsonWriter::Add(const Value& value) {
  Separate();
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    text_ += JsonQuoted(*text);
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    text_ += std::to_string(*whole);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    text_ += *truth ? "true" : "false";
  } else if (const auto* real = std::get_if<double>(&value); real == nullptr) {
    text_ += "null";
  } else if (std::isfinite(*real)) {
    AppendJsonDecimal(*real, &text_);
  } else {
    text_ += std::isnan(*real) ? "\"NaN\"" : *real > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

void JsonWriter::Add(Fields fields) {
  for (const auto& [name, value] : fields) {
    Key(name);
    Add(value);
  }
}

void JsonWriter::Key(std::string_view name) {
  Separate();
  text_ += JsonQuoted(name);
  text_ += ':';
}

void JsonWriter::Separate() {
  if (!text_.empty() && std::string_view("{[:").find(text_.back()) == std::string_view::npos) {
    text_ += ',';
  }
}

}  // namespace colcast
