#include "server/http2/grpc_headers.h"

#include <algorithm>
#include <cstdint>

namespace colcast::http2 {
namespace {

// Returns 0 for an unknown unit.
int64_t NanosecondsOf(char unit) {
  switch (unit) {
    case 'H':
      return 3600'000'000'000;
    case 'M':
      return 60'000'000'000;
    case 'S':
      return 1'000'000'000;
    case 'm':
      return 1'000'000;
    case 'u':
      return 1'000;
    case 'n':
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  constexpr size_t kMaxDigits = 8;
  if (text.size() < 2 || text.size() > kMaxDigits + 1) return std::nullopt;
  const int64_t unit = NanosecondsOf(text.back());
  if (unit == 0) return std::nullopt;
  int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + (digit - '0');
  }
  // 99,999,999 hours would overflow.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
  if (number > kLongest.count() / unit) return kLongest;
  return std::chrono::nanoseconds(number * unit);
}

std::string FormatTimeout(std::chrono::nanoseconds timeout) {
  using std::chrono::ceil;
  constexpr int64_t kMost = 99'999'999;
  const int64_t milliseconds =
      std::max(int64_t{0}, int64_t{ceil<std::chrono::milliseconds>(timeout).count()});
  if (milliseconds <= kMost) return std::to_string(milliseconds) + 'm';
  return std::to_string(std::min(kMost, int64_t{ceil<std::chrono::seconds>(timeout).count()})) +
         'S';
}

bool IsGrpc(std::string_view content_type) {
  constexpr std::string_view kGrpc = "application/grpc";
  if (content_type.substr(0, kGrpc.size()) != kGrpc) return false;
  return content_type.size() == kGrpc.size() || content_type[kGrpc.size()] == '+' ||
         content_type[kGrpc.size()] == ';';
}

std::string PercentEncode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace colcast::http2
