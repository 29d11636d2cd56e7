// Decodes percent-encoding (RFC 3986, section 2.1) in URLs and in gRPC's messages.
#ifndef COLCAST_SERVER_BASE_PERCENT_DECODE_H_
#define COLCAST_SERVER_BASE_PERCENT_DECODE_H_

#include <string>
#include <string_view>

namespace colcast {

// A '%' that is not followed by two hexadecimal digits stays unchanged.
std::string PercentDecode(std::string_view text);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_PERCENT_DECODE_H_
