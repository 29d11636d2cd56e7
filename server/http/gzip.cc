#include "server/http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace colcast::http {
namespace {

constexpr int kGzip = 16;  // added to the window's bits: gzip's header and trailer, not zlib's
constexpr size_t kChunk = 64 << 10;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Of one "coding;q=0.5" of the header. Without a weight it is 1.
bool HasWeight(std::string_view parameters) {
  const size_t at = parameters.find("q=");
  return at == std::string_view::npos ||
         parameters.find_first_of("123456789", at) != std::string_view::npos;
}

class Inflater {
 public:
  explicit Inflater(std::string_view input) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  // The next bytes, written to `out`: zlib's code, and how many they are.
  int Next(char* out, size_t* size) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(*size);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    *size -= stream_.avail_out;
    return code;
  }
  bool at_end() const { return stream_.avail_in == 0; }
  void NextMember() { inflateReset(&stream_); }
  const char* error() const { return stream_.msg != nullptr ? stream_.msg : "it ends too early"; }

 private:
  z_stream stream_ = {};
};

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

Status Gunzip(std::string_view compressed, size_t max_bytes, std::string* text) {
  text->clear();
  Inflater inflater(compressed);
  char chunk[kChunk];
  for (;;) {
    size_t size = sizeof(chunk);
    const int code = inflater.Next(chunk, &size);
    if (size > max_bytes - text->size()) {
      return ResourceExhausted("the gzip body of ", compressed.size(), " bytes inflates to over ",
                               max_bytes, " bytes, the limit of a request");
    }
    text->append(chunk, size);
    if (code == Z_STREAM_END) {
      if (inflater.at_end()) return OkStatus();
      inflater.NextMember();
    } else if (code != Z_OK) {
      return InvalidArgument("the body is not valid gzip: ", inflater.error());
    }
  }
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
