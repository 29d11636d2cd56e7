// Text exchanged with clients: UTF-8, percent-encoding and JSON.
#ifndef COLCAST_SERVER_BASE_TEXT_H_
#define COLCAST_SERVER_BASE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace colcast {

inline bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Decodes pairs of hexadecimal digits in lower case. Returns false for any other text.
bool ReadHex(std::string_view text, std::string* bytes);

// Whether the text is valid UTF-8, as proto3 requires of string fields, without overlong forms,
// surrogates or characters above U+10FFFF.
bool IsValidUtf8(std::string_view text);

// Decodes percent-encoding (RFC 3986, section 2.1) in URLs and gRPC messages. Leaves a '%'
// unchanged unless two hexadecimal digits follow.
std::string PercentDecode(std::string_view text);

// Appends `text` in double quotes, with JSON escapes. Copies invalid UTF-8 unchanged.
void AppendJsonString(std::string_view text, std::string* json);

// Returns `text` in double quotes, in a form that every JSON reader accepts: invalid UTF-8 becomes
// U+FFFD.
std::string JsonQuoted(std::string_view text);

// Appends the shortest decimal that parses to the same value, always with a '.' or an exponent.
// NaN, Infinity and -Infinity are written literally, as in TF Serving.
void AppendJsonDecimal(float value, std::string* json);
void AppendJsonDecimal(double value, std::string* json);

// Writes JSON text in order.
class JsonWriter {
 public:
  // Non-finite doubles are written as strings, for example "Infinity". In strings, invalid UTF-8
  // becomes U+FFFD.
  using Value = std::variant<std::nullptr_t, bool, std::string_view, int64_t, double>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  // Adds an element to the open list.
  void Add(const Value& value);
  // Adds fields to the open object.
  void Add(Fields fields);

  // Writes an object with these fields or with what `write()` adds. If there is a name, the object
  // becomes a field of the open object.
  void Object(Fields fields) {
    Object([&] { Add(fields); });
  }
  template <typename Write>
  void Object(Write&& write) {
    Nest("{}", write);
  }
  template <typename Write>
  void Object(std::string_view name, Write&& write) {
    Key(name);
    Object(write);
  }

  // Writes a list of the elements that `write()` adds. If there is a name, the list becomes a field
  // of the open object.
  template <typename Write>
  void List(Write&& write) {
    Nest("[]", write);
  }
  template <typename Write>
  void List(std::string_view name, Write&& write) {
    Key(name);
    List(write);
  }

  const std::string& text() const { return text_; }

 private:
  void Separate();
  void Key(std::string_view name);

  template <typename Write>
  void Nest(const char* brackets, Write&& write) {
    Separate();
    text_ += brackets[0];
    write();
    text_ += brackets[1];
  }

  std::string text_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_TEXT_H_
