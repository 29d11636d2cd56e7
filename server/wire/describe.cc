#include "server/wire/describe.h"

#include <cstddef>

#include "server/base/utf8.h"

namespace colcast {
namespace {

constexpr size_t kMaxQuotedSize = 100;
constexpr size_t kMaxReadableSize = 1000;
constexpr size_t kMaxDimensions = 16;

// The first `size` bytes of `text`, or up to three fewer, so that no UTF-8 character is cut.
std::string_view Cut(std::string_view text, size_t size) {
  const auto in_character = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  while (size > 0 && in_character(size)) --size;
  return text.substr(0, size);
}

std::string EscapeBeyondAscii(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      escaped += c;
    } else {
      escaped.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return escaped;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  if (text.size() <= kMaxQuotedSize) return quoted.append(text).append("\"");
  return quoted.append(Cut(text, kMaxQuotedSize)).append("...\"");
}

std::string Readable(std::string_view text) {
  const bool long_text = text.size() > kMaxReadableSize;
  if (long_text) text = Cut(text, kMaxReadableSize);
  std::string readable = IsValidUtf8(text) ? std::string(text) : EscapeBeyondAscii(text);
  return long_text ? readable + "..." : readable;
}

std::string ShapeName(Span<int64_t> dims) {
  std::string name = "[";
  for (size_t i = 0; i < dims.size() && i < kMaxDimensions; ++i) {
    if (i > 0) name += ",";
    name += std::to_string(dims[i]);
  }
  return name + (dims.size() > kMaxDimensions ? ",...]" : "]");
}

}  // namespace colcast
