#include "server/wire/data_type.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "server/base/text.h"

namespace colcast {

namespace {

constexpr int kReferenceOffset = 100;

struct TypeFacts {
  const char* name;
  size_t element_size;
  ValueField field;
  std::string_view recorded = {};
  std::string_view inferred = {};
};

constexpr std::array<TypeFacts, 33> kTypes = {{
    {"DT_INVALID", 0, ValueField::kNone},
    {"DT_FLOAT", 4, ValueField::kFloat, "float32", "FP32"},
    {"DT_DOUBLE", 8, ValueField::kDouble, "float64", "FP64"},
    {"DT_INT32", 4, ValueField::kInt, "int32", "INT32"},
    {"DT_UINT8", 1, ValueField::kInt, "uint8", "UINT8"},
    {"DT_INT16", 2, ValueField::kInt, "int16", "INT16"},
    {"DT_INT8", 1, ValueField::kInt, "int8", "INT8"},
    {"DT_STRING", 0, ValueField::kString, "string", "BYTES"},
    {"DT_COMPLEX64", 8, ValueField::kScomplex},
    {"DT_INT64", 8, ValueField::kInt64, "int64", "INT64"},
    {"DT_BOOL", 1, ValueField::kBool, "bool", "BOOL"},
    {"DT_QINT8", 1, ValueField::kInt},
    {"DT_QUINT8", 1, ValueField::kInt},
    {"DT_QINT32", 4, ValueField::kInt},
    {"DT_BFLOAT16", 2, ValueField::kHalf, "bfloat16", "BF16"},
    {"DT_QINT16", 2, ValueField::kInt},
    {"DT_QUINT16", 2, ValueField::kInt},
    {"DT_UINT16", 2, ValueField::kInt, "uint16", "UINT16"},
    {"DT_COMPLEX128", 16, ValueField::kDcomplex},
    {"DT_HALF", 2, ValueField::kHalf, "float16", "FP16"},
    {"DT_RESOURCE", 0, ValueField::kNone},
    {"DT_VARIANT", 0, ValueField::kNone},
    {"DT_UINT32", 4, ValueField::kUint32, "uint32", "UINT32"},
    {"DT_UINT64", 8, ValueField::kUint64, "uint64", "UINT64"},
    {"DT_FLOAT8_E5M2", 1, ValueField::kFloat8},
    {"DT_FLOAT8_E4M3FN", 1, ValueField::kFloat8},
    {"DT_FLOAT8_E4M3FNUZ", 1, ValueField::kFloat8},
    {"DT_FLOAT8_E4M3B11FNUZ", 1, ValueField::kFloat8},
    {"DT_FLOAT8_E5M2FNUZ", 1, ValueField::kFloat8},
    // 4-bit types still occupy one byte per element, in tensors and on the wire.
    {"DT_INT4", 1, ValueField::kInt},
    {"DT_UINT4", 1, ValueField::kInt},
    {"DT_INT2", 1, ValueField::kInt},
    {"DT_UINT2", 1, ValueField::kInt},
}};

DataType Find(std::string_view TypeFacts::*name, std::string_view text) {
  for (size_t dtype = 0; dtype < kTypes.size() && !text.empty(); ++dtype) {
    if (kTypes[dtype].*name == text) return static_cast<DataType>(dtype);
  }
  return DT_INVALID;
}

bool IsListed(int64_t dtype) { return dtype >= 0 && dtype < static_cast<int64_t>(kTypes.size()); }

}  // namespace

size_t ElementSize(DataType dtype) { return IsListed(dtype) ? kTypes[dtype].element_size : 0; }

ValueField ValueFieldOf(DataType dtype) {
  return IsListed(dtype) ? kTypes[dtype].field : ValueField::kNone;
}

DataType RecordedDataType(std::string_view name) { return Find(&TypeFacts::recorded, name); }

DataType InferDataType(std::string_view datatype) { return Find(&TypeFacts::inferred, datatype); }

std::string_view InferDatatypeName(DataType dtype) {
  return IsListed(dtype) ? kTypes[dtype].inferred : std::string_view();
}

std::string DataTypeName(DataType dtype) {
  if (IsListed(dtype)) return kTypes[dtype].name;
  const int64_t referenced = int64_t{dtype} - kReferenceOffset;
  if (referenced > 0 && IsListed(referenced)) return std::string(kTypes[referenced].name) + "_REF";
  return "dtype " + std::to_string(static_cast<int>(dtype));
}

namespace {

constexpr size_t kMaxQuotedSize = 100;
constexpr size_t kMaxReadableSize = 1000;
constexpr size_t kMaxDimensions = 16;

// The first `size` bytes of `text`, or up to three fewer, so that no UTF-8 character is cut.
std::string_view Cut(std::string_view text, size_t size) {
  const auto in_character = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  while (size > 0 && in_character(size)) --size;
  return text.substr(0, size);
}

std::string EscapeBeyondAscii(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      escaped += c;
    } else {
      escaped.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return escaped;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  if (text.size() <= kMaxQuotedSize) return quoted.append(text).append("\"");
  return quoted.append(Cut(text, kMaxQuotedSize)).append("...\"");
}

std::string Readable(std::string_view text) {
  const bool long_text = text.size() > kMaxReadableSize;
  if (long_text) text = Cut(text, kMaxReadableSize);
  std::string readable = IsValidUtf8(text) ? std::string(text) : EscapeBeyondAscii(text);
  return long_text ? readable + "..." : readable;
}

std::string ShapeName(Span<int64_t> dims) {
  std::string name = "[";
  for (size_t i = 0; i < dims.size() && i < kMaxDimensions; ++i) {
    if (i > 0) name += ",";
    name += std::to_string(dims[i]);
  }
  return name + (dims.size() > kMaxDimensions ? ",...]" : "]");
}

}  // namespace colcast
