#include "server/rest/json_reader.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

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

// "In situ" here means that the parser does not copy numbers, and that TextStream stores strings.
constexpr unsigned kParseFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag |
                                 rapidjson::kParseNumbersAsStringsFlag |
                                 rapidjson::kParseNanAndInfFlag;
constexpr std::string_view kBase64 = "b64";
// The parser needs eight bytes per level, but a client sends only one byte for it.
constexpr size_t kMaxDepth = 100'000;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The string being read.
class Scratch {
 public:
  explicit Scratch(RequestMemory* memory) : memory_(memory) { Grow(kLeast); }
  ~Scratch() {
    if (memory_ != nullptr) memory_->Return(counted_);
  }
  Scratch(const Scratch&) = delete;

  const char* begin() const { return text_.data(); }
  char* data() { return text_.data(); }
  size_t capacity() const { return text_.size(); }
  void Double() { Grow(2 * text_.size()); }

 private:
  static constexpr size_t kLeast = 256;

  void Grow(size_t size) {
    if (memory_ != nullptr) {
      memory_->Take(size - counted_);
      counted_ = size;
    }
    text_.resize(size);
  }

  RequestMemory* const memory_;
  size_t counted_ = 0;
  std::string text_;
};

// RapidJSON's view of a text. The parser copies this object; copies stay in registers if all
// functions that take one are inlined.
class TextStream {
 public:
  using Ch = char;

  TextStream(BodyText* text, Scratch* scratch) : text_(text), scratch_(scratch) {}

  Ch Peek() const { return at_ != end_ || Refill() ? *at_ : '\0'; }
  Ch Take() { return at_ != end_ || Refill() ? *at_++ : '\0'; }
  size_t Tell() const { return end_offset_ - (end_ - at_); }

  // The parser calls this before a string, and after a number, whose contiguous text it then reads
  // from just before the returned position.
  Ch* PutBegin() {
    out_ = scratch_->data();
    out_end_ = out_ + scratch_->capacity();
    return const_cast<Ch*>(at_);
  }
  void Put(Ch c) {
    if (out_ == out_end_) Double();
    *out_++ = c;
  }
  size_t PutEnd(Ch* /*begin*/) { return out_ - scratch_->begin(); }
  void Flush() {}

 private:
  RAPIDJSON_FORCEINLINE bool Refill() const {
    const std::string_view piece = text_->Next();
    if (piece.empty()) return false;
    at_ = piece.data();
    end_ = at_ + piece.size();
    end_offset_ += piece.size();
    return true;
  }
  RAPIDJSON_FORCEINLINE void Double() {
    const size_t size = scratch_->capacity();
    scratch_->Double();
    out_ = scratch_->data() + size;
    out_end_ = scratch_->data() + scratch_->capacity();
  }

  BodyText* text_;
  Scratch* scratch_;
  char* out_ = nullptr;
  char* out_end_ = nullptr;
  mutable const char* at_ = nullptr;
  mutable const char* end_ = nullptr;
  mutable size_t end_offset_ = 0;
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
  const bool negative = *text == '-';
  const char first = text[negative ? 1 : 0];
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
  double& number = value->real;
  number = 0;
  if (first == 'N') {
    number = std::numeric_limits<double>::quiet_NaN();
  } else if (first == 'I') {
    number = negative ? -kInfinity : kInfinity;
  } else {
    if (std::from_chars(text, end, number).ec == std::errc::result_out_of_range) {
      // The number is too small or too large; strtod tells which.
      number = std::strtod(std::string(text, size).c_str(), nullptr);
    }
    return !std::isinf(number);
  }
  return true;
}

// Passes RapidJSON's events to a ValueReader, with {"b64": "..."} as one value. A method returns
// false, which ends the parsing, for a number that is too large, for a list that is nested too
// deep, or if the reader has stopped.
class Events {
 public:
  // `scratch` holds the current string.
  Events(const Scratch* scratch, RequestMemory* memory, ValueReader* reader)
      : scratch_(*scratch), memory_(memory), reader_(*reader) {}
  ~Events() {
    if (memory_ != nullptr) memory_->Return(counted_);
  }
  Events(const Events&) = delete;

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
    const JsonValue value = JsonString({scratch_.begin(), size});
    if (held_ != Held::kKey) return Scalar(value);
    Hold(value.text);
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
    const std::string_view name(scratch_.begin(), size);
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
  void Hold(std::string_view text) {
    if (memory_ != nullptr && text.size() > counted_) {
      memory_->Take(text.size() - counted_);
      counted_ = text.size();
    }
    base64_ = text;
  }
  void LetGo() {
    if (held_ == Held::kNothing) return;
    const Held held = std::exchange(held_, Held::kNothing);
    Begin(JsonValue::Kind::kObject);
    if (held != Held::kObject) reader_.Key(kBase64);
    if (held == Held::kString) reader_.Value(JsonString(base64_));
  }

  Held held_ = Held::kNothing;
  const Scratch& scratch_;
  RequestMemory* const memory_;
  size_t counted_ = 0;
  std::string base64_;  // the withheld string
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

Status ReadJson(const BodyBytes& body, RequestMemory* memory, ValueReader* reader) {
  BodyText text(body);
  Scratch scratch(memory);
  TextStream stream(&text, &scratch);
  Events events(&scratch, memory, reader);
  const rapidjson::ParseResult result = rapidjson::Reader().Parse<kParseFlags>(stream, events);
  if (reader->stopped()) return reader->status();
  if (Status status = text.Finish(); !status.ok()) return status;
  if (text.empty()) return InvalidArgument("JSON Parse error: The document is empty");
  if (!result.IsError()) return OkStatus();
  return InvalidArgument("JSON Parse error: ", Reason(result.Code(), events),
                         " at offset: ", text.skipped() + result.Offset());
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
