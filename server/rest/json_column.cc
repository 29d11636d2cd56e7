#include "server/rest/json_column.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/writer.h"

namespace colcast::http {
namespace {

constexpr size_t kMaxRank = 254;  // TensorFlow's limit

using Kind = JsonValue::Kind;

template <typename Integer>
bool ToInteger(const JsonValue& value, Integer* integer) {
  using Limits = std::numeric_limits<Integer>;
  if (value.kind == Kind::kUint64) {
    if (!std::is_same_v<Integer, uint64_t>) return false;
    *integer = static_cast<Integer>(value.large);
    return true;
  }
  if (value.kind != Kind::kInt64) return false;
  if constexpr (std::is_unsigned_v<Integer>) {
    if (value.whole < 0 || static_cast<uint64_t>(value.whole) > Limits::max()) return false;
  } else {
    if (value.whole < Limits::min() || value.whole > Limits::max()) return false;
  }
  *integer = static_cast<Integer>(value.whole);
  return true;
}

}  // namespace

void JsonColumn::Value(const JsonValue& value) {
  const size_t level = depth_;
  if (value.IsContainer()) ++depth_;
  if (failed_) return;
  if (!has_shape_) Shape(value);
  if (failed_) return;
  const bool list = value.kind == Kind::kList;
  bool filled = false;
  if (level < shape_.size()) {
    if (list) return place_.push_back(0);
    MismatchLength(value, level);
  } else {
    filled = list ? Mismatch(value, "") : Fill(value);
  }
  if (filled) return NextPlace();
  failed_ = true;
  culprit_.depth = level;
  culprit_.open = value.IsContainer();
}

void JsonColumn::End(size_t count) {
  --depth_;
  if (failed_) return EndAfterError(count);
  has_shape_ = true;
  int64_t& length = shape_[depth_];
  if (length == kOpen) length = static_cast<int64_t>(count);
  place_.pop_back();
  if (length == static_cast<int64_t>(count)) return NextPlace();
  JsonValue list;
  list.kind = Kind::kList;
  list.count = count;
  MismatchedList(list);
}

void JsonColumn::EndAfterError(size_t count) {
  JsonValue ended;
  ended.kind = culprit_.kind;
  ended.count = count;
  if (culprit_.open && depth_ == culprit_.depth) {
    culprit_.open = false;
    culprit_.description = Describe(ended);
  } else if (depth_ < culprit_.depth) {
    culprit_.depth = depth_;
    place_.resize(depth_);
    ended.kind = Kind::kList;
    int64_t& length = shape_[depth_];
    if (length == kOpen) length = static_cast<int64_t>(count);
    if (length != static_cast<int64_t>(count)) MismatchedList(ended);
  }
}

Status JsonColumn::Finish() {
  if (!failed_) return OkStatus();
  if (!culprit_.status.ok()) return culprit_.status;
  if (culprit_.expected.empty()) {
    culprit_.expected = "a value, because earlier lists have shape " + ShapeName(shape_);
  }
  return InvalidArgument("input ", culprit_.where, " (", DataTypeName(dtype_),
                         "): ", culprit_.description, ", expected ", culprit_.expected);
}

void JsonColumn::MoveTo(int64_t rows, CountedBytes* content, Column* column) {
  *content = std::move(content_);
  column->dtype = dtype_;
  if (rows >= 0) column->dims.push_back(rows);
  column->dims.insert(column->dims.end(), shape_.begin(), shape_.end());
  if (dtype_ != DT_STRING) {
    column->values.tensor_content = content->bytes();
  } else if (strings_ > 0) {
    column->values.messages.push_back(content->bytes());
    column->values.count = strings_;
  }
}

// The shape of the first value: the length of its first list, of that list's first list, and so on.
void JsonColumn::Shape(const JsonValue& value) {
  if (value.kind != Kind::kList) {
    has_shape_ = true;
  } else if (shape_.size() == kMaxRank) {
    place_.clear();
    culprit_.status = InvalidArgument("input ", Place(), ": lists nested deeper than ", kMaxRank);
    culprit_.depth = 0;
    failed_ = true;
  } else {
    shape_.push_back(kOpen);
  }
}

void JsonColumn::MismatchedList(const JsonValue& list) {
  failed_ = true;
  culprit_ = {};
  culprit_.depth = depth_;
  MismatchLength(list, depth_);
}

bool JsonColumn::Fill(const JsonValue& value) {
  if (dtype_ == DT_STRING) return FillString(value);
  if (dtype_ == DT_BOOL) {
    return value.kind == Kind::kBool ? Store(value.truth) : Mismatch(value, "true or false");
  }
  bool filled = false;
  const bool is_number = VisitNumber(dtype_, [&](auto type) {
    using Number = decltype(type);
    if constexpr (std::is_floating_point_v<Number>) {
      filled = FillFloat<Number>(value);
    } else {
      filled = FillInteger<Number>(value);
    }
  });
  if (!is_number) {
    culprit_.status =
        Error(StatusCode::kUnimplemented, "input ", Place(), ": ", DataTypeName(dtype_),
              " cannot be represented in JSON; send it over gRPC");
  }
  return filled;
}

template <typename Float>
bool JsonColumn::FillFloat(const JsonValue& value) {
  // Rounds an integer once: converting 2^53 + 1 to double first would round twice for a float.
  if (value.kind == Kind::kInt64) return Store(static_cast<Float>(value.whole));
  if (value.kind == Kind::kUint64) return Store(static_cast<Float>(value.large));
  if (value.kind != Kind::kDouble) return Mismatch(value, "a number");
  const auto element = static_cast<Float>(value.real);
  if (std::isinf(element) && std::isfinite(value.real)) {
    return Mismatch(value, "at most 3.4e38 in magnitude");
  }
  return Store(element);
}

template <typename Integer>
bool JsonColumn::FillInteger(const JsonValue& value) {
  Integer integer;
  if (ToInteger(value, &integer)) return Store(integer);
  using Limits = std::numeric_limits<Integer>;
  return Mismatch(value, "a whole number from " + std::to_string(Limits::min()) + " to " +
                             std::to_string(Limits::max()));
}

bool JsonColumn::FillString(const JsonValue& value) {
  if (value.kind == Kind::kString) {
    StoreString(value.text);
    return true;
  }
  if (value.kind != Kind::kBase64) return Mismatch(value, "a string or {\"b64\": \"...\"}");
  std::string bytes;
  if (!DecodeBase64(value, &bytes)) {
    culprit_.status = InvalidArgument("input ", Place(), ": ", Describe(JsonString(value.text)),
                                      " is not base64");
    return false;
  }
  StoreString(bytes);
  return true;
}

template <typename T>
bool JsonColumn::Store(T element) {
  content_.AppendValue(element);
  return true;
}

void JsonColumn::StoreString(std::string_view text) {
  constexpr auto kField = static_cast<uint32_t>(ValueField::kString);
  const size_t size = FieldSize(kField, text.size());
  Writer(content_.Room(size)).Field(kField, text);
  content_.Extend(size);
  ++strings_;
}

bool JsonColumn::Mismatch(const JsonValue& value, const std::string& expected) {
  culprit_.where = Place();
  culprit_.kind = value.kind;
  culprit_.description = Describe(value);
  culprit_.expected = expected;
  return false;
}

void JsonColumn::MismatchLength(const JsonValue& value, size_t level) {
  Mismatch(value, "a list of " + std::to_string(shape_[level]) + ", like the first one");
}

void JsonColumn::NextPlace() {
  if (!place_.empty()) ++place_.back();
}

std::string JsonColumn::Place() const {
  std::string place = Quoted(name_);
  for (const uint32_t index : place_) place += '[' + std::to_string(index) + ']';
  return place;
}

}  // namespace colcast::http
