// Values of a request for error messages, never longer than a line.
#ifndef COLCAST_SERVER_WIRE_DESCRIBE_H_
#define COLCAST_SERVER_WIRE_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/span.h"

namespace colcast {

// `text`, which is valid UTF-8, in double quotes; "..." after about 100 bytes.
std::string Quoted(std::string_view text);

// Text of TensorFlow's, which may quote a request at length: at most about 1000 bytes, with "..."
// where it was cut, and, if it is no UTF-8, every byte beyond ASCII as \xff.
std::string Readable(std::string_view text);

// "[2,3]"; "[2,3,...]" after 16 dimensions.
std::string ShapeName(Span<int64_t> dims);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_DESCRIBE_H_
