// Base-128 varints in contiguous memory, eight bytes at a time.
#ifndef COLCAST_SERVER_WIRE_VARINT_H_
#define COLCAST_SERVER_WIRE_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace colcast {

constexpr size_t kMaxVarintSize = 10;
constexpr uint64_t kContinuationBits = 0x8080808080808080;

inline uint64_t LoadEightBytes(const uint8_t* at) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Joins the low seven bits of the eight bytes, least significant group first.
inline uint64_t JoinSevenBitGroups(uint64_t word) {
  word &= ~kContinuationBits;
  word = (word & 0x007f007f007f007f) | ((word & 0x7f007f007f007f00) >> 1);
  word = (word & 0x00003fff00003fff) | ((word & 0x3fff00003fff0000) >> 2);
  return (word & 0x000000000fffffff) | ((word & 0x0fffffff00000000) >> 4);
}

// Reads one varint; returns the byte after it, or null if it is longer than 10 bytes. Bits beyond
// the 64th are dropped. Requires 10 readable bytes.
inline const uint8_t* ReadVarintUnchecked(const uint8_t* at, uint64_t* value) {
  const uint64_t word = LoadEightBytes(at);
  const uint64_t last_bytes = ~word & kContinuationBits;
  if (last_bytes != 0) {
    const uint64_t up_to_last = last_bytes ^ (last_bytes - 1);
    *value = JoinSevenBitGroups(word & up_to_last);
    return at + (__builtin_ctzll(last_bytes) + 1) / 8;
  }
  *value = JoinSevenBitGroups(word) | uint64_t{at[8] & 0x7fu} << 56;
  if (at[8] < 0x80) return at + 9;
  *value |= uint64_t{at[9]} << 63;
  return at[9] < 0x80 ? at + 10 : nullptr;
}

inline size_t VarintSize(uint64_t value) {
  const int bits = 64 - __builtin_clzll(value | 1);
  return (bits + 6) / 7;
}

// Returns the byte after the varint.
inline uint8_t* WriteVarint(uint64_t value, uint8_t* out) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[kMaxVarintSize];
  out->append(reinterpret_cast<const char*>(bytes), WriteVarint(value, bytes) - bytes);
}

// Counts the varints in bytes received in slices, and detects overlong ones.
class VarintCounter {
 public:
  // Returns false if some varint is longer than 10 bytes.
  bool Add(const uint8_t* data, size_t size);

  // Whether the bytes so far end at the end of a varint (or there are none).
  bool complete() const { return pending_ == 0; }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
  int pending_ = 0;  // bytes of the unfinished varint
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_VARINT_H_
