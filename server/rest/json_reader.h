// Parses a request's JSON as TF Serving does: with the same library, and with the tokens NaN,
// Infinity and -Infinity, which are not JSON. Builds no tree.
#ifndef COLCAST_SERVER_REST_JSON_READER_H_
#define COLCAST_SERVER_REST_JSON_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/status.h"
#include "server/http1/request_memory.h"
#include "server/rest/json_value.h"

namespace colcast::http {

// The error of readers of rows, which stop at the limit.
inline Status TooManyRows(std::string_view where, int64_t max_rows) {
  return ResourceExhausted(where, " has more rows than max_request_rows, which is ", max_rows);
}

// Parses the text, without recursion, and passes its values to `reader`; strings are views of the
// text unless they have escapes. A NUL must follow the text. As in TF Serving, a leading byte order
// mark and trailing NULs are skipped. `memory`, which may be null, counts unescaped strings.
// Returns INVALID_ARGUMENT, with the offset, for text that is not JSON, which takes precedence over
// errors in reader->status(). If the reader stopped the parsing, returns its status.
Status ReadJson(std::string_view text, RequestMemory* memory, ValueReader* reader);

// Reads an object, each member with the reader for its name.
class MembersReader : public ValueReader {
 protected:
  // Returns the reader for a member's value, or null to skip the value. The reader must stay valid
  // until the value has ended. Members may be repeated.
  virtual ValueReader* ReaderOf(std::string_view name) = 0;
  // Returns null if the member was given before, so that only its first value counts.
  static ValueReader* First(bool* given, ValueReader* reader) {
    return std::exchange(*given, true) ? nullptr : reader;
  }

 private:
  void OnValue(const JsonValue& value) final;
  void OnKey(std::string_view name) final;
  void OnEnd(size_t count) final;

  ValueReader* member_ = nullptr;
};

class StringReader final : public ValueReader {
 public:
  // Fails with INVALID_ARGUMENT, naming `name`, for values other than strings.
  explicit StringReader(std::string name) : name_(std::move(name)) {}

  const std::string& text() const { return text_; }

 private:
  void OnValue(const JsonValue& value) override;

  const std::string name_;
  std::string text_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_READER_H_
