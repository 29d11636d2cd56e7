// JSON text, written in order.
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
  // A double that is not finite is written as text, for example "Infinity". Bytes of a text that
  // are not UTF-8 become U+FFFD.
  using Value = std::variant<std::nullptr_t, bool, std::string_view, int64_t, double>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  // An element of the open list.
  void Add(const Value& value);
  // Fields of the open object.
  void Add(Fields fields);

  // An object with these fields, or with what `write()` adds; with a name, a field of the open
  // object.
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

  // A list of the elements that `write()` adds; with a name, a field of the open object.
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
