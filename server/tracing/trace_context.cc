#include "server/tracing/trace_context.h"

#include <algorithm>

namespace colcast::tracing {
namespace {

// The size of "VV-TRACE_ID-PARENT_ID-FLAGS".
constexpr size_t kSize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

// -1 unless it is a lower-case hexadecimal digit.
int ValueOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool ReadHex(std::string_view text, std::string* bytes) {
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = ValueOf(text[i]);
    const int low = ValueOf(text[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

bool IsZero(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  TraceContext context;
  std::string version;
  std::string flags;
  if (!ReadHex(text.substr(0, 2), &version) || !ReadHex(text.substr(3, 32), &context.trace_id) ||
      !ReadHex(text.substr(36, 16), &context.parent_id) || !ReadHex(text.substr(53, 2), &flags)) {
    return std::nullopt;
  }
  const bool has_more = text.size() > kSize;
  if (version == "\xff" || IsZero(context.trace_id) || IsZero(context.parent_id) ||
      (has_more && (IsZero(version) || text[kSize] != '-'))) {
    return std::nullopt;
  }
  context.sampled = (flags[0] & 1) != 0;
  return context;
}

}  // namespace colcast::tracing
