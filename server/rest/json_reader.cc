#include "server/rest/json_reader.h"

#include <absl/strings/escaping.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "server/base/text.h"
#include "server/wire/data_type.h"

namespace colcast::http {
namespace {

class TextStream;

}  // namespace
}  // namespace colcast::http

namespace rapidjson {

template <>
struct StreamTraits<colcast::http::TextStream> {
  enum { copyOptimization = 1 };
};

}  // namespace rapidjson

namespace colcast::http {
namespace {

// "In situ" here means that the parser copies neither numbers nor strings: TextStream finds them.
constexpr unsigned kParseFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag |
                                 rapidjson::kParseNumbersAsStringsFlag |
                                 rapidjson::kParseNanAndInfFlag;
constexpr std::string_view kBase64 = "b64";
constexpr size_t kMostDigits = 60;  // of a number in an error message
// Nesting takes eight bytes of memory for each byte that a client sends.
constexpr size_t kMaxDepth = 100'000;

// The current string, and the memory of all strings with escapes, at most the text's size.
struct Strings {
  RequestMemory* const memory;
  const char* current = nullptr;
  std::unique_ptr<char[]> unescaped;
  size_t counted = 0;

  explicit Strings(RequestMemory* memory) : memory(memory) {}
  ~Strings() {
    if (memory != nullptr) memory->Return(counted);
  }
  Strings(const Strings&) = delete;

  char* Allocate(size_t size) {
    if (memory != nullptr) memory->Take(size);
    counted = size;
    unescaped.reset(new char[size]);
    return unescaped.get();
  }
};

// RapidJSON's view of a text that ends with a NUL. The parser copies this object; copies stay in
// registers if all functions that take one are inlined.
class TextStream {
 public:
  using Ch = char;

  TextStream(std::string_view text, Strings* strings)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), strings_(strings) {}

  Ch Peek() const { return *at_; }
  Ch Take() { return *at_++; }
  size_t Tell() const { return at_ - begin_; }

  // The parser calls this before a string, and after a number, whose text it then reads from just
  // before the returned position.
  Ch* PutBegin() {
    string_ = same_ = at_;
    is_same_ = true;
    return const_cast<Ch*>(at_);
  }
  // After an escape, at_ is ahead of the characters put so far.
  void Put(Ch c) {
    if (is_same_) {
      if (++same_ == at_) return;
      BeginCopy();
    }
    *free_++ = c;
  }
  size_t PutEnd(Ch* /*begin*/) {
    strings_->current = string_;
    return (is_same_ ? same_ : free_) - string_;
  }
  void Flush() {}

 private:
  void BeginCopy() {
    if (free_ == nullptr) free_ = strings_->Allocate(end_ - string_ + 1);
    const size_t size = --same_ - string_;
    std::memcpy(free_, string_, size);
    string_ = free_;
    free_ += size;
    is_same_ = false;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  Strings* strings_;
  const char* string_ = nullptr;  // the current string: in the text, or unescaped
  const char* same_ = nullptr;    // the end of its characters, while they equal the text's
  bool is_same_ = true;
  char* free_ = nullptr;  // the rest of the memory for unescaped strings
};

template <typename Number>
bool IsWhole(const char* text, const char* end, Number* number) {
  const auto read = std::from_chars(text, end, *number);
  return read.ec == std::errc() && read.ptr == end;
}

// Converts a number's text to the nearest double. RapidJSON 1.1.0 is off by a few bits, and its
// exact mode has undefined behavior for 0e300. Returns false if the number is too large for a
// double.
bool ReadNumber(const char* text, size_t size, JsonValue* value) {
  const char* const end = text + size;
  if (IsWhole(text, end, &value->whole)) {
    value->kind = JsonValue::Kind::kInt64;
    return true;
  }
  if (IsWhole(text, end, &value->large)) {
    value->kind = JsonValue::Kind::kUint64;
    return true;
  }
  value->kind = JsonValue::Kind::kDouble;
  value->text = {text, size};
  double& number = value->real;
  if (std::from_chars(text, end, number).ec != std::errc::result_out_of_range) return true;
  // The number is too small or too large; strtod tells which.
  number = std::strtod(std::string(text, size).c_str(), nullptr);
  return !std::isinf(number);
}

// Passes RapidJSON's events to a ValueReader, with {"b64": "..."} as one value. A method returns
// false, which ends the parsing, for a number that is too large, for a list that is nested too
// deep, or if the reader has stopped.
class Events {
 public:
  Events(const Strings* strings, ValueReader* reader) : strings_(*strings), reader_(*reader) {}

  bool too_deep() const { return depth_ > kMaxDepth; }

  bool Null() { return Scalar({}); }
  bool Bool(bool truth) {
    JsonValue value;
    value.kind = JsonValue::Kind::kBool;
    value.truth = truth;
    return Scalar(value);
  }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    JsonValue value;
    return ReadNumber(text, size, &value) && Scalar(value);
  }
  bool String(const char*, rapidjson::SizeType size, bool) {
    const JsonValue value = JsonString({strings_.current, size});
    if (held_ != Held::kKey) return Scalar(value);
    base64_ = value.text;
    held_ = Held::kString;
    return true;
  }
  bool StartArray() { return Start(JsonValue::Kind::kList); }
  bool EndArray(rapidjson::SizeType count) { return End(count); }
  bool StartObject() {
    const bool ok = Start(JsonValue::Kind::kObject, /*hold=*/true);
    held_ = Held::kObject;
    return ok;
  }
  bool Key(const char*, rapidjson::SizeType size, bool) {
    const std::string_view name(strings_.current, size);
    if (held_ == Held::kObject && name == kBase64) {
      held_ = Held::kKey;
      return true;
    }
    LetGo();
    reader_.Key(name);
    return !reader_.stopped();
  }
  bool EndObject(rapidjson::SizeType count) {
    if (held_ != Held::kString) return End(count);
    --depth_;
    held_ = Held::kNothing;
    JsonValue value = JsonString(base64_);
    value.kind = JsonValue::Kind::kBase64;
    reader_.Value(value);
    return !reader_.stopped();
  }

  // Never called, because numbers are delivered as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  // The part of an object withheld from the reader, because it may turn out to be {"b64": "..."}.
  enum class Held { kNothing, kObject, kKey, kString };

  bool Scalar(const JsonValue& value) {
    LetGo();
    reader_.Value(value);
    return !reader_.stopped();
  }
  bool Start(JsonValue::Kind kind, bool hold = false) {
    LetGo();
    if (!hold) Begin(kind);
    return ++depth_ <= kMaxDepth && !reader_.stopped();
  }
  bool End(size_t count) {
    LetGo();
    --depth_;
    reader_.End(count);
    return true;
  }
  void Begin(JsonValue::Kind kind) {
    JsonValue value;
    value.kind = kind;
    reader_.Value(value);
  }
  void LetGo() {
    if (held_ == Held::kNothing) return;
    const Held held = std::exchange(held_, Held::kNothing);
    Begin(JsonValue::Kind::kObject);
    if (held != Held::kObject) reader_.Key(kBase64);
    if (held == Held::kString) reader_.Value(JsonString(base64_));
  }

  Held held_ = Held::kNothing;
  const Strings& strings_;
  std::string_view base64_;  // the withheld string
  ValueReader& reader_;
  size_t depth_ = 0;
};

std::string Reason(rapidjson::ParseErrorCode code, const Events& events) {
  if (events.too_deep()) return "Nested deeper than " + std::to_string(kMaxDepth) + ".";
  // Apart from nesting, `events` only stops at a number that is too large.
  if (code == rapidjson::kParseErrorTermination) code = rapidjson::kParseErrorNumberTooBig;
  return rapidjson::GetParseError_En(code);
}

}  // namespace

Status ReadJson(std::string_view text, RequestMemory* memory, ValueReader* reader) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const bool is_marked = text.substr(0, kByteOrderMark.size()) == kByteOrderMark;
  const size_t skipped = is_marked ? kByteOrderMark.size() : 0;
  Strings strings(memory);
  TextStream stream(text.substr(skipped), &strings);
  Events events(&strings, reader);
  const rapidjson::ParseResult result = rapidjson::Reader().Parse<kParseFlags>(stream, events);
  if (reader->stopped()) return reader->status();
  const size_t nul = std::min(text.find('\0'), text.size());
  if (text.find_first_not_of('\0', nul) != std::string_view::npos) {
    return InvalidArgument("JSON Parse error: Invalid value. at offset: ", nul);
  }
  if (text.empty()) return InvalidArgument("JSON Parse error: The document is empty");
  if (!result.IsError()) return OkStatus();
  return InvalidArgument("JSON Parse error: ", Reason(result.Code(), events),
                         " at offset: ", skipped + result.Offset());
}

std::string Describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return value.truth ? "true" : "false";
    case JsonValue::Kind::kInt64:
      return "the number " + std::to_string(value.whole);
    case JsonValue::Kind::kUint64:
      return "the number " + std::to_string(value.large);
    case JsonValue::Kind::kDouble:
      return "the number " + Readable(value.text.substr(0, kMostDigits));
    case JsonValue::Kind::kString:
      return IsValidUtf8(value.text) ? "the string " + Quoted(value.text)
                                     : "a string that is not UTF-8";
    case JsonValue::Kind::kBase64:
      return "an object of 1";
    case JsonValue::Kind::kList:
      return "a list of " + std::to_string(value.count);
    case JsonValue::Kind::kObject:
      return "an object of " + std::to_string(value.count);
  }
  return "";
}

bool DecodeBase64(const JsonValue& value, std::string* bytes) {
  return absl::Base64Unescape({value.text.data(), value.text.size()}, bytes);
}

void MembersReader::OnValue(const JsonValue& value) {
  if (depth() > 0) {
    if (member_ == nullptr) return;
    member_->Value(value);
    if (member_->stopped()) Stop(member_->status());
  } else if (value.kind != JsonValue::Kind::kObject && value.kind != JsonValue::Kind::kBase64) {
    FailAt("the body is ", value, ", expected a JSON object");
  }
}

void MembersReader::OnKey(std::string_view name) {
  if (depth() == 1) {
    member_ = ReaderOf(name);
  } else if (member_ != nullptr) {
    member_->Key(name);
  }
}

void MembersReader::OnEnd(size_t count) {
  if (depth() > 0 && member_ != nullptr) member_->End(count);
}

void StringReader::OnValue(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kString) {
    text_ = value.text;
  } else {
    FailAt(Quoted(name_) + " is ", value, ", expected a string");
  }
}

}  // namespace colcast::http
