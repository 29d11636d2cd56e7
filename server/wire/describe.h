// Formats values of a request for error messages, in at most one line.
#ifndef COLCAST_SERVER_WIRE_DESCRIBE_H_
#define COLCAST_SERVER_WIRE_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/span.h"

namespace colcast {

// `text`, which is valid UTF-8, in double quotes; "..." after about 100 bytes.
std::string Quoted(std::string_view text);

// A message of TensorFlow's, which may quote a request at length: cut to about 1000 bytes with
// "..."; if it is not valid UTF-8, every byte beyond ASCII becomes \xff.
std::string Readable(std::string_view text);

// "[2,3]"; "[2,3,...]" after 16 dimensions.
std::string ShapeName(Span<int64_t> dims);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_DESCRIBE_H_
