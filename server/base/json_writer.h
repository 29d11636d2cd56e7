// Writes JSON text in order.
#ifndef COLCAST_SERVER_BASE_JSON_WRITER_H_
#define COLCAST_SERVER_BASE_JSON_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace colcast {

class JsonWriter {
 public:
  // A non-finite double is written as a string, for example "Infinity". Invalid UTF-8 in a text
  // becomes U+FFFD.
  using Value = std::variant<std::nullptr_t, bool, std::string_view, int64_t, double>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  // Adds an element to the open list.
  void Add(const Value& value);
  // Adds fields to the open object.
  void Add(Fields fields);

  // Writes an object with these fields, or with what `write()` adds; given a name, it becomes a
  // field of the open object.
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

  // Writes a list of the elements that `write()` adds; given a name, it becomes a field of the open
  // object.
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

#endif  // COLCAST_SERVER_BASE_JSON_WRITER_H_
