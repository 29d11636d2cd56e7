// Percent-encoding (RFC 3986, section 2.1), backwards: of URLs and of gRPC's messages.
#ifndef COLCAST_SERVER_BASE_PERCENT_DECODE_H_
#define COLCAST_SERVER_BASE_PERCENT_DECODE_H_

#include <string>
#include <string_view>

namespace colcast {

// A '%' without two hexadecimal digits stays what it is.
std::string PercentDecode(std::string_view text);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_PERCENT_DECODE_H_
