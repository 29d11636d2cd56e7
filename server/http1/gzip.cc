#include "server/http1/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace colcast::http {
namespace {

constexpr int kGzip = 16;  // added to the window bits: gzip format instead of zlib

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Whether the weight in "coding;q=0.5" is above 0. A missing weight is 1.
bool HasWeight(std::string_view parameters) {
  const size_t at = parameters.find("q=");
  return at == std::string_view::npos ||
         parameters.find_first_of("123456789", at) != std::string_view::npos;
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::string_view entry = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(entry.size() + 1, accept_encoding.size()));
    const size_t semicolon = std::min(entry.find(';'), entry.size());
    const std::string_view coding = Trim(entry.substr(0, semicolon));
    if (coding == "gzip" || coding == "*") return HasWeight(entry.substr(semicolon));
  }
  return false;
}

std::string Gzip(std::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(compressed.size() - stream.avail_out);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace colcast::http
