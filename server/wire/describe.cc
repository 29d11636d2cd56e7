#include "server/wire/describe.h"

#include <cstddef>

namespace colcast {
namespace {

constexpr size_t kMaxQuotedSize = 100;
constexpr size_t kMaxDimensions = 16;

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  if (text.size() <= kMaxQuotedSize) return quoted.append(text).append("\"");
  size_t size = kMaxQuotedSize;
  const auto in_character = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  while (size > 0 && in_character(size)) --size;
  return quoted.append(text.substr(0, size)).append("...\"");
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
