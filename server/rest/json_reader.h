// Parses a request's JSON as TF Serving does: with the same library, and accepting NaN, Infinity
// and -Infinity, which are not JSON. Builds no tree.
#ifndef COLCAST_SERVER_REST_JSON_READER_H_
#define COLCAST_SERVER_REST_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/status.h"
#include "server/http1/request_memory.h"

namespace colcast::http {

// One value, passed to readers during parsing.
struct JsonValue {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInt64,   // integers that fit
    kUint64,  // larger integers
    kDouble,  // other numbers
    kString,
    kBase64,  // exactly {"b64": "..."}; `text` is the encoded string
    kList,
    kObject,
  };

  bool IsContainer() const { return kind == Kind::kList || kind == Kind::kObject; }

  Kind kind = Kind::kNull;
  union {
    bool truth;
    int64_t whole = 0;
    uint64_t large;
    double real;
    size_t count;  // number of elements in a list or object; valid once that has ended
  };
  // The text of a string, or of a kDouble as it was sent. Invalid after the reader returns.
  std::string_view text;
};

inline JsonValue JsonString(std::string_view text) {
  JsonValue value;
  value.kind = JsonValue::Kind::kString;
  value.text = text;
  return value;
}

// A description for error messages, at most one line, such as `the string "x"` or `a list of 3`.
std::string Describe(const JsonValue& value);

// REQUIRES kBase64. Returns false if the text is not base64; padding may be missing.
bool DecodeBase64(const JsonValue& value, std::string* bytes);

// Reads a value during parsing, without building a tree. Receives a scalar, or the beginning,
// elements and end of a list or object. After the first error it receives nothing more.
class ValueReader {
 public:
  virtual ~ValueReader() = default;

  void Value(const JsonValue& value) {
    if (!failed_) OnValue(value);
    if (value.IsContainer()) ++depth_;
  }
  void Key(std::string_view name) {
    if (!failed_) OnKey(name);
  }
  void End(size_t count) {
    --depth_;
    if (!failed_) return OnEnd(count);
    if (culprit_open_ && depth_ == culprit_depth_) Complete(count);
  }

  const Status& status() const { return status_; }
  // Whether a limit was exceeded, so that the rest of the text need not be read.
  bool stopped() const { return stopped_; }

 protected:
  // In OnValue() and OnKey(), depth() is the number of lists and objects that enclose the value or
  // key; in OnEnd(), the number that enclose the list or object that ends.
  virtual void OnValue(const JsonValue& value) = 0;
  virtual void OnKey(std::string_view /*name*/) {}
  virtual void OnEnd(size_t /*count*/) {}

  size_t depth() const { return depth_; }
  bool failed() const { return failed_; }

  void Fail(Status status) {
    failed_ = true;
    status_ = std::move(status);
  }

  // Stops the parsing, so that errors in the rest of the text are ignored. Call in OnValue().
  void Stop(Status status) {
    stopped_ = true;
    Fail(std::move(status));
  }

  // Fails with INVALID_ARGUMENT and a description of `culprit` between the two texts. Call in
  // OnValue(). For a list or object, status() is set at its end, when its size is known.
  void FailAt(std::string before, const JsonValue& culprit, std::string after) {
    failed_ = true;
    before_ = std::move(before);
    after_ = std::move(after);
    culprit_ = culprit;
    culprit_open_ = culprit.IsContainer();
    culprit_depth_ = depth_;
    if (!culprit_open_) status_ = InvalidArgument(before_, Describe(culprit_), after_);
  }

 private:
  void Complete(size_t count) {
    culprit_open_ = false;
    culprit_.count = count;
    status_ = InvalidArgument(before_, Describe(culprit_), after_);
  }

  size_t depth_ = 0;
  bool failed_ = false;
  bool stopped_ = false;
  Status status_;
  std::string before_, after_;
  JsonValue culprit_;
  bool culprit_open_ = false;
  size_t culprit_depth_ = 0;
};

// The error that a reader reports if there are more than `max_rows` rows.
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
  // Returns null, to skip the value, if the member was given before, as only the first value
  // counts.
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
