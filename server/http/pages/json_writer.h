// The figures of the status page as JSON, in the order in which they are written.
#ifndef COLCAST_SERVER_HTTP_PAGES_JSON_WRITER_H_
#define COLCAST_SERVER_HTTP_PAGES_JSON_WRITER_H_

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace colcast::http {

class JsonWriter {
 public:
  // A double that is not finite is written as text, "Infinity" say, and what is not UTF-8 in a text
  // as U+FFFD, so that every reader of JSON takes it.
  using Value = std::variant<std::nullptr_t, std::string_view, int64_t, double>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  // An element of the open list.
  void Add(const Value& value);
  // Fields of the open object.
  void Add(Fields fields);

  // A whole object, or one whose fields `write()` adds; with a name, as a field of the open object.
  void Object(Fields fields) {
    Object([&] { Add(fields); });
  }
  template <typename Write>
  void Object(Write&& write) {
    json_.StartObject();
    write();
    json_.EndObject();
  }
  template <typename Write>
  void Object(std::string_view name, Write&& write) {
    Key(name);
    Object(write);
  }

  // A field of the open object: a list whose elements `write()` adds.
  template <typename Write>
  void List(std::string_view name, Write&& write) {
    Key(name);
    json_.StartArray();
    write();
    json_.EndArray();
  }

  std::string text() const { return {text_.GetString(), text_.GetSize()}; }

 private:
  void Key(std::string_view name);

  rapidjson::StringBuffer text_;
  rapidjson::Writer<rapidjson::StringBuffer> json_{text_};
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_JSON_WRITER_H_
