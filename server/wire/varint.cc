#include "server/wire/varint.h"

namespace colcast {
namespace {

// A varint is too long if its tenth byte is not its last.
constexpr int kTooManyPending = kMaxVarintSize;

int CountLastBytes(uint64_t last_bytes) {
  return static_cast<int>(((last_bytes >> 7) * 0x0101010101010101) >> 56);
}

}  // namespace

bool VarintCounter::Add(const uint8_t* data, size_t size) {
  const uint8_t* const end = data + size;
  for (; end - data >= 8; data += 8) {
    const uint64_t last_bytes = ~LoadEightBytes(data) & kContinuationBits;
    if (last_bytes == 0) {
      pending_ += 8;
      if (pending_ >= kTooManyPending) return false;
      continue;
    }
    const int leading = __builtin_ctzll(last_bytes) / 8;
    if (pending_ + leading >= kTooManyPending) return false;
    pending_ = __builtin_clzll(last_bytes) / 8;
    count_ += CountLastBytes(last_bytes);
  }
  for (; data != end; ++data) {
    if (*data < 0x80) {
      ++count_;
      pending_ = 0;
    } else if (++pending_ >= kTooManyPending) {
      return false;
    }
  }
  return true;
}

}  // namespace colcast
