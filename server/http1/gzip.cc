#include "server/http1/gzip.h"

#include <algorithm>
#include <new>

namespace colcast::http {
namespace {

constexpr int kGzip = 16;  // added to the window's bits: gzip's header and trailer, not zlib's
constexpr int kGzipOrZlib = 32;  // either, whichever comes
constexpr size_t kPiece = 64 << 10;

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

Gunzipper::Gunzipper(Span<Slice> compressed, size_t max_bytes)
    : compressed_(compressed), max_bytes_(max_bytes) {
  if (inflateInit2(&stream_, MAX_WBITS + kGzipOrZlib) != Z_OK) throw std::bad_alloc();
}

Gunzipper::~Gunzipper() { inflateEnd(&stream_); }

void Gunzipper::FeedNextSlice() {
  while (stream_.avail_in == 0 && next_slice_ < compressed_.size()) {
    const Slice& slice = compressed_[next_slice_++];
    stream_.next_in = const_cast<Bytef*>(slice.data);
    stream_.avail_in = static_cast<uInt>(slice.size);
  }
}

Status Gunzipper::Read(char* out, size_t* size) {
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(*size);
  while (!ended_ && stream_.avail_out > 0) {
    FeedNextSlice();
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      FeedNextSlice();
      ended_ = stream_.avail_in == 0;
      if (!ended_) inflateReset(&stream_);
    } else if (code != Z_OK) {
      return InvalidArgument("the body is not valid gzip: ",
                             stream_.msg != nullptr ? stream_.msg : "it ends too early");
    }
  }
  *size -= stream_.avail_out;
  inflated_ += *size;
  if (inflated_ <= max_bytes_) return OkStatus();
  return ResourceExhausted(
      "the gzip body of ", Bytes(compressed_.data(), compressed_.size()).size(),
      " bytes inflates to over ", max_bytes_, " bytes, the limit of a request");
}

Status Gunzip(std::string_view compressed, size_t max_bytes, std::string* text) {
  text->clear();
  const Slice slice = {reinterpret_cast<const uint8_t*>(compressed.data()), compressed.size()};
  Gunzipper inflated({&slice, 1}, max_bytes);
  char piece[kPiece];
  for (;;) {
    size_t size = sizeof(piece);
    if (Status status = inflated.Read(piece, &size); !status.ok()) return status;
    if (size == 0) return OkStatus();
    text->append(piece, size);
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
