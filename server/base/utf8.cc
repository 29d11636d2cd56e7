#include "server/base/utf8.h"

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

}  // namespace colcast
