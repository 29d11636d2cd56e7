// gzip for bodies: of compressed requests, and of large answers to clients that accept it.
#ifndef COLCAST_SERVER_HTTP1_GZIP_H_
#define COLCAST_SERVER_HTTP1_GZIP_H_

#include <string>
#include <string_view>

namespace colcast::http {

// Whether an Accept-Encoding header accepts gzip: names it, or "*", with a weight above 0.
bool AcceptsGzip(std::string_view accept_encoding);

// Optimizes for speed rather than size.
std::string Gzip(std::string_view text);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_GZIP_H_
