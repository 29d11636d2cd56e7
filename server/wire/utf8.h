// UTF-8 validity, which proto3 asks of every string field.
#ifndef COLCAST_SERVER_WIRE_UTF8_H_
#define COLCAST_SERVER_WIRE_UTF8_H_

#include <string_view>

#include "server/wire/bytes.h"

namespace colcast {

// No overlong forms, no surrogates, nothing above U+10FFFF.
bool IsValidUtf8(std::string_view text);
bool IsValidUtf8(const Bytes& text);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_UTF8_H_
