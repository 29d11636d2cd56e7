// For tests: compresses texts, and decompresses them completely.
#ifndef COLCAST_SERVER_WIRE_INFLATER_TESTING_H_
#define COLCAST_SERVER_WIRE_INFLATER_TESTING_H_

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/inflater.h"

namespace colcast {

// `window_bits` chooses the form, as in zlib's deflateInit2().
inline std::string Deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  const int code =
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  if (code != Z_OK) std::abort();
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Inflates `compressed` in slices of `slice_bytes`.
inline Status InflateAll(std::string_view compressed, size_t max_bytes, std::string* text,
                         size_t slice_bytes = 1 << 20) {
  const auto* const data = reinterpret_cast<const uint8_t*>(compressed.data());
  std::vector<Slice> slices;
  for (size_t at = 0; at < compressed.size(); at += slice_bytes) {
    slices.push_back({data + at, std::min(slice_bytes, compressed.size() - at)});
  }
  text->clear();
  std::string block;
  return Inflate(
      slices, max_bytes,
      [&](size_t size, uint8_t** room) {
        block.assign(size, '?');
        *room = reinterpret_cast<uint8_t*>(block.data());
        return OkStatus();
      },
      [&](size_t size) { text->append(block, 0, size); });
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_INFLATER_TESTING_H_
