// Text exchanged with clients: UTF-8, percent-encoding, JSON strings.
#ifndef COLCAST_SERVER_BASE_TEXT_H_
#define COLCAST_SERVER_BASE_TEXT_H_

#include <string>
#include <string_view>

namespace colcast {

// Whether the text is UTF-8, which proto3 requires of every string field: no overlong forms, no
// surrogates, nothing above U+10FFFF.
bool IsValidUtf8(std::string_view text);

// Decodes percent-encoding (RFC 3986, section 2.1) in URLs and in gRPC's messages. A '%' that is
// not followed by two hexadecimal digits stays unchanged.
std::string PercentDecode(std::string_view text);

// Appends `text` in double quotes, with JSON's escapes. Bytes that are not UTF-8 stay as they are.
void AppendJsonString(std::string_view text, std::string* json);

// `text` in double quotes in a form that every JSON reader accepts: invalid UTF-8 becomes U+FFFD.
std::string JsonQuoted(std::string_view text);

// Appends the shortest decimal that reads back as the same value, always with a '.' or an exponent;
// NaN, Infinity and -Infinity are written literally, as in TF Serving.
void AppendJsonDecimal(float value, std::string* json);
void AppendJsonDecimal(double value, std::string* json);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_TEXT_H_
