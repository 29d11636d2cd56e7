#include "server/rest/json_column.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/writer.h"

namespace colcast::http {
namespace {

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

std::string ListOf(int64_t length) {
  return "a list of " + std::to_string(length) + ", like the first one";
}

}  // namespace

void JsonColumn::OnValue(const JsonValue& value) {
  const bool is_list = value.kind == Kind::kList;
  if (!has_shape_ && is_list) {
    if (shape_.size() == kMaxDimensions) {
      return Fail(
          InvalidArgument("input ", Quoted(name_), ": lists nested deeper than ", kMaxDimensions));
    }
    shape_.push_back(kOpen);
  }
  has_shape_ = has_shape_ || !is_list;
  if (depth() < shape_.size()) {
    if (is_list) return place_.push_back(0);
    Mismatch(value, ListOf(shape_[depth()]));
  } else if (is_list) {
    Mismatch(value, "a single value, like the first one");
  } else if (Fill(value)) {
    NextPlace();
  }
}

void JsonColumn::OnEnd(size_t count) {
  has_shape_ = true;
  int64_t& length = shape_[depth()];
  if (length == kOpen) length = static_cast<int64_t>(count);
  place_.pop_back();
  if (length == static_cast<int64_t>(count)) return NextPlace();
  JsonValue list;
  list.kind = Kind::kList;
  list.count = count;
  Fail(InvalidArgument(Place(), Describe(list), ", expected ", ListOf(length)));
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
    Fail(Error(StatusCode::kUnimplemented, "input ", Quoted(name_), ": ", DataTypeName(dtype_),
               " cannot be represented in JSON; send it over gRPC"));
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
  if (value.kind == Kind::kString) return StoreString(value.text);
  if (value.kind != Kind::kBase64) return Mismatch(value, "a string or {\"b64\": \"...\"}");
  std::string bytes;
  if (DecodeBase64(value, &bytes)) return StoreString(bytes);
  return Mismatch(JsonString(value.text), "base64");
}

template <typename T>
bool JsonColumn::Store(T element) {
  content_.AppendValue(element);
  return true;
}

bool JsonColumn::StoreString(std::string_view text) {
  constexpr auto kField = static_cast<uint32_t>(ValueField::kString);
  const size_t size = FieldSize(kField, text.size());
  Writer(content_.Room(size)).Field(kField, text);
  content_.Extend(size);
  ++strings_;
  return true;
}

bool JsonColumn::Mismatch(const JsonValue& value, const std::string& expected) {
  FailAt(Place(), value, ", expected " + expected);
  return false;
}

void JsonColumn::NextPlace() {
  if (!place_.empty()) ++place_.back();
}

std::string JsonColumn::Place() const {
  std::string place = "input " + Quoted(name_);
  for (const uint32_t index : place_) place += '[' + std::to_string(index) + ']';
  return place + " (" + DataTypeName(dtype_) + "): ";
}

}  // namespace colcast::http
