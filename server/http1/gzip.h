// gzip for bodies: of compressed requests, and of large answers to clients that accept it.
#ifndef COLCAST_SERVER_HTTP1_GZIP_H_
#define COLCAST_SERVER_HTTP1_GZIP_H_

#include <zlib.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/span.h"

namespace colcast::http {

// Whether an Accept-Encoding header accepts gzip: names it, or "*", with a weight above 0.
bool AcceptsGzip(std::string_view accept_encoding);

// Inflates what is whole gzip members, or zlib streams, one after the other, a piece at a time.
class Gunzipper {
 public:
  // `compressed` outlives it.
  Gunzipper(Span<Slice> compressed, size_t max_bytes);
  ~Gunzipper();
  Gunzipper(const Gunzipper&) = delete;
  Gunzipper& operator=(const Gunzipper&) = delete;

  // The next piece, of at most *size bytes, written to `out`; none at the end. INVALID_ARGUMENT for
  // what is not gzip, RESOURCE_EXHAUSTED as soon as more than `max_bytes` come out in all.
  Status Read(char* out, size_t* size);

 private:
  void FeedNextSlice();

  const Span<Slice> compressed_;
  const size_t max_bytes_;
  size_t next_slice_ = 0;
  size_t inflated_ = 0;
  bool ended_ = false;
  z_stream stream_ = {};
};

// All of it at once; the errors are the same.
Status Gunzip(std::string_view compressed, size_t max_bytes, std::string* text);

// Fast rather than small.
std::string Gzip(std::string_view text);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_GZIP_H_
