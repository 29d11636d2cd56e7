// The prefix of each gRPC message: a compression flag and four bytes of size.
#ifndef COLCAST_SERVER_HTTP2_MESSAGE_PREFIX_H_
#define COLCAST_SERVER_HTTP2_MESSAGE_PREFIX_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace colcast::http2 {

inline constexpr size_t kMessagePrefixBytes = 5;
using MessagePrefix = std::array<uint8_t, kMessagePrefixBytes>;

inline MessagePrefix PrefixOf(size_t message_bytes, bool is_compressed) {
  const auto size = static_cast<uint32_t>(message_bytes);
  return {static_cast<uint8_t>(is_compressed), static_cast<uint8_t>(size >> 24),
          static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 8),
          static_cast<uint8_t>(size)};
}

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_MESSAGE_PREFIX_H_
