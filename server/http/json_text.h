// Values as JSON text, appended to a string.
#ifndef COLCAST_SERVER_HTTP_JSON_TEXT_H_
#define COLCAST_SERVER_HTTP_JSON_TEXT_H_

#include <string>
#include <string_view>

namespace colcast::http {

// In double quotes, with JSON's escapes. Bytes that are not UTF-8 stay as they are.
void AppendString(std::string_view text, std::string* json);

// The shortest decimal that reads back as the same value, always with a '.' or an exponent; NaN,
// Infinity and -Infinity as such, as TF Serving writes them.
void AppendDecimal(float value, std::string* json);
void AppendDecimal(double value, std::string* json);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_JSON_TEXT_H_
