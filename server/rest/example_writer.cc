#include "server/rest/example_writer.h"

#include <cmath>
#include <cstring>

#include "server/base/text.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast::http {
namespace {

void AppendHeader(uint32_t number, size_t size, std::string* out) {
  AppendVarint(MakeTag(number, kLengthType), out);
  AppendVarint(size, out);
}

// The headers (tag and size) of nested fields, each of which begins with the next one. They are
// written from the innermost field outwards.
class Headers {
 public:
  explicit Headers(size_t size) : size_(size) {}

  void Wrap(uint32_t number) { PutHeader(number, size_); }
  // Adds the header of a field of `size` bytes, not all of which need be written yet.
  void PutHeader(uint32_t number, size_t size) {
    uint8_t header[kMost];
    uint8_t* const end = WriteVarint(size, WriteVarint(MakeTag(number, kLengthType), header));
    at_ -= end - header;
    std::memcpy(text_ + at_, header, end - header);
    size_ += end - header;
  }
  // Inserts the headers into `body`, before the content that starts at `begin`.
  void MoveTo(size_t begin, std::string* body) const {
    body->insert(begin, text_ + at_, sizeof(text_) - at_);
  }

 private:
  static constexpr size_t kMost = 2 * kMaxVarintSize;

  char text_[4 * kMost];
  size_t at_ = sizeof(text_);
  size_t size_;  // bytes of the content and of the headers written so far
};

}  // namespace

void ExampleWriter::Begin() {
  bytes_.clear();
  table_.Clear();
  names_.clear();
}

Status ExampleWriter::BeginFeature(std::string_view name) {
  if (!IsValidUtf8(name)) return InvalidArgument("a feature's name is not UTF-8");
  if (table_.Find(name) < table_.size()) {
    return InvalidArgument("feature ", Quoted(name), " appears twice");
  }
  table_.FindOrAdd(names_.emplace_back(name));
  begin_ = bytes_.size();
  kind_ = Kind::kNotSet;
  return OkStatus();
}

Status ExampleWriter::Add(const JsonValue& value) {
  const Kind kind = KindOf(value);
  if (kind == Kind::kNotSet) {
    return InvalidArgument("cannot be a value, expected a number, a string or {\"b64\": \"...\"}");
  }
  if (kind_ != Kind::kNotSet && kind_ != kind) {
    return InvalidArgument("is of a different kind than the values before it");
  }
  kind_ = kind;
  Count();
  if (kind == Kind::kFloat) return AddFloat(value.real);
  return kind == Kind::kInt64 ? AddInt64(value) : AddBytes(value);
}

void ExampleWriter::EndFeature() {
  Headers headers(bytes_.size() - begin_);
  if (kind_ != Kind::kNotSet) {
    if (kind_ != Kind::kBytes) headers.Wrap(1);  // packed
    headers.Wrap(static_cast<uint32_t>(kind_));
  }
  headers.Wrap(2);  // the map entry's value, which follows its key
  headers.MoveTo(begin_, &bytes_);
  bytes_.insert(begin_, feature());
  Headers entry(bytes_.size() - begin_);
  entry.PutHeader(1, feature().size());
  entry.Wrap(1);
  entry.MoveTo(begin_, &bytes_);
}

const std::string& ExampleWriter::End() {
  Headers headers(bytes_.size());
  headers.Wrap(1);
  headers.MoveTo(0, &bytes_);
  return bytes_;
}

ExampleWriter::Kind ExampleWriter::KindOf(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kBool:
    case JsonValue::Kind::kInt64:
    case JsonValue::Kind::kUint64:
      return Kind::kInt64;
    case JsonValue::Kind::kDouble:
      return Kind::kFloat;
    case JsonValue::Kind::kString:
    case JsonValue::Kind::kBase64:
      return Kind::kBytes;
    default:
      return Kind::kNotSet;
  }
}

Status ExampleWriter::AddFloat(double wide) {
  const auto value = static_cast<float>(wide);
  if (std::isinf(value) && std::isfinite(wide)) return InvalidArgument("is too large for a float");
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return OkStatus();
}

Status ExampleWriter::AddInt64(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kUint64) return InvalidArgument("does not fit an int64");
  const int64_t number = value.kind == JsonValue::Kind::kBool ? value.truth : value.whole;
  AppendVarint(static_cast<uint64_t>(number), &bytes_);
  return OkStatus();
}

Status ExampleWriter::AddBytes(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kString) {
    AppendBytes(value.text);
    return OkStatus();
  }
  std::string decoded;
  if (!DecodeBase64(value, &decoded)) return InvalidArgument("is not base64");
  AppendBytes(decoded);
  return OkStatus();
}

void ExampleWriter::AppendBytes(std::string_view value) {
  AppendHeader(1, value.size(), &bytes_);
  bytes_.append(value);
}

// Counts additional memory when an Example is larger than all earlier ones.
void ExampleWriter::Count() {
  constexpr size_t kNameBytes = 64;  // including its place in the table
  const size_t taken = bytes_.capacity() + names_.size() * kNameBytes;
  if (memory_ == nullptr || taken <= counted_) return;
  memory_->Take(taken - counted_);
  counted_ = taken;
}

}  // namespace colcast::http
