#include "server/http/json_column.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "server/http/json_document.h"
#include "server/wire/describe.h"

namespace colcast::http {
namespace {

constexpr size_t kMaxRank = 254;  // TensorFlow's

// Whatever the value, the lengths of its first list, of that one's first list and so on.
std::vector<int64_t> ShapeOf(const rapidjson::Value& value) {
  std::vector<int64_t> shape;
  for (const rapidjson::Value* list = &value; list->IsArray() && shape.size() <= kMaxRank;
       list = &(*list)[0]) {
    shape.push_back(list->Size());
    if (list->Empty()) break;
  }
  return shape;
}

template <typename Integer>
bool ToInteger(const rapidjson::Value& value, Integer* integer) {
  if constexpr (std::is_unsigned_v<Integer>) {
    if (!value.IsUint64() || value.GetUint64() > std::numeric_limits<Integer>::max()) return false;
    *integer = static_cast<Integer>(value.GetUint64());
  } else {
    if (!value.IsInt64() || value.GetInt64() > std::numeric_limits<Integer>::max() ||
        value.GetInt64() < std::numeric_limits<Integer>::min()) {
      return false;
    }
    *integer = static_cast<Integer>(value.GetInt64());
  }
  return true;
}

}  // namespace

Status JsonColumn::Append(const rapidjson::Value& value) {
  if (!has_shape_) {
    shape_ = ShapeOf(value);
    if (shape_.size() > kMaxRank) {
      return InvalidArgument("input ", Place(), ": lists nested deeper than ", kMaxRank);
    }
    has_shape_ = true;
  }
  place_.clear();
  return Fill(value, 0);
}

void JsonColumn::MoveTo(int64_t rows, Column* column) {
  column->dtype = dtype_;
  if (rows >= 0) column->dims.push_back(rows);
  column->dims.insert(column->dims.end(), shape_.begin(), shape_.end());
  column->values.tensor_content = request_->Keep(std::move(content_));
  column->values.strings.reserve(strings_.size());
  for (const std::string_view value : strings_) column->values.AddString(value);
}

Status JsonColumn::Fill(const rapidjson::Value& value, size_t level) {
  if (level < shape_.size()) return FillList(value, level);
  if (value.IsArray()) {
    return Mismatch(value, "a value, as the lists before are of shape " + ShapeName(shape_));
  }
  return FillScalar(value);
}

Status JsonColumn::FillList(const rapidjson::Value& list, size_t level) {
  if (!list.IsArray() || list.Size() != shape_[level]) {
    return Mismatch(list,
                    "a list of " + std::to_string(shape_[level]) + ", as the first one there is");
  }
  place_.push_back(0);
  for (const rapidjson::Value& element : list.GetArray()) {
    if (Status status = Fill(element, level + 1); !status.ok()) return status;
    ++place_.back();
  }
  place_.pop_back();
  return OkStatus();
}

Status JsonColumn::FillScalar(const rapidjson::Value& value) {
  switch (dtype_) {
    case DT_FLOAT:
      return FillFloat<float>(value);
    case DT_DOUBLE:
      return FillFloat<double>(value);
    case DT_INT8:
      return FillInteger<int8_t>(value);
    case DT_INT16:
      return FillInteger<int16_t>(value);
    case DT_INT32:
      return FillInteger<int32_t>(value);
    case DT_INT64:
      return FillInteger<int64_t>(value);
    case DT_UINT8:
      return FillInteger<uint8_t>(value);
    case DT_UINT32:
      return FillInteger<uint32_t>(value);
    case DT_UINT64:
      return FillInteger<uint64_t>(value);
    case DT_BOOL:
      return value.IsBool() ? Store(value.GetBool()) : Mismatch(value, "true or false");
    case DT_STRING:
      return FillString(value);
    default:
      return Error(StatusCode::kUnimplemented, "input ", Place(), ": ", DataTypeName(dtype_),
                   " has no form in JSON; send it over gRPC");
  }
}

template <typename Float>
Status JsonColumn::FillFloat(const rapidjson::Value& value) {
  if (!value.IsNumber()) return Mismatch(value, "a number");
  // Integers are rounded once: 2^53 + 1 to a double first would be twice for a float.
  if (value.IsInt64()) return Store(static_cast<Float>(value.GetInt64()));
  if (value.IsUint64()) return Store(static_cast<Float>(value.GetUint64()));
  const double wide = value.GetDouble();
  const Float element = static_cast<Float>(wide);
  if (std::isinf(element) && std::isfinite(wide)) {
    return Mismatch(value, "at most 3.4e38 in magnitude");
  }
  return Store(element);
}

template <typename Integer>
Status JsonColumn::FillInteger(const rapidjson::Value& value) {
  Integer integer;
  if (ToInteger(value, &integer)) return Store(integer);
  using Limits = std::numeric_limits<Integer>;
  return Mismatch(value, "a whole number from " + std::to_string(Limits::min()) + " to " +
                             std::to_string(Limits::max()));
}

Status JsonColumn::FillString(const rapidjson::Value& value) {
  if (value.IsString()) {
    strings_.push_back(Text(value));
    return OkStatus();
  }
  if (!IsBase64(value)) return Mismatch(value, "a string or {\"b64\": \"...\"}");
  std::string bytes;
  if (!DecodeBase64(value, &bytes)) {
    return InvalidArgument("input ", Place(), ": ", Describe(value.MemberBegin()->value),
                           " is not base64");
  }
  strings_.push_back(request_->Keep(std::move(bytes)));
  return OkStatus();
}

template <typename T>
Status JsonColumn::Store(T element) {
  content_.append(reinterpret_cast<const char*>(&element), sizeof(element));
  return OkStatus();
}

Status JsonColumn::Mismatch(const rapidjson::Value& value, std::string_view expected) const {
  return InvalidArgument("input ", Place(), " (", DataTypeName(dtype_), "): ", Describe(value),
                         ", expected ", expected);
}

std::string JsonColumn::Place() const {
  std::string place = Quoted(name_);
  for (const uint32_t index : place_) place += '[' + std::to_string(index) + ']';
  return place;
}

}  // namespace colcast::http
