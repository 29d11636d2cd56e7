// Checks UTF-8, which proto3 requires of every string field.
#ifndef COLCAST_SERVER_BASE_UTF8_H_
#define COLCAST_SERVER_BASE_UTF8_H_

#include <string_view>

namespace colcast {

// No overlong forms, no surrogates, nothing above U+10FFFF.
bool IsValidUtf8(std::string_view text);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_UTF8_H_
