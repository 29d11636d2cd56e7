// tensorflow.DataType without TensorFlow: the same numbers, names and element sizes.
#ifndef COLCAST_SERVER_WIRE_DATA_TYPE_H_
#define COLCAST_SERVER_WIRE_DATA_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/bytes.h"

namespace colcast {

// An open enum, as in protobuf: a number outside the list is kept unchanged.
enum DataType : int {
  DT_INVALID = 0,
  DT_FLOAT = 1,
  DT_DOUBLE = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 5,
  DT_INT8 = 6,
  DT_STRING = 7,
  DT_COMPLEX64 = 8,
  DT_INT64 = 9,
  DT_BOOL = 10,
  DT_QINT8 = 11,
  DT_QUINT8 = 12,
  DT_QINT32 = 13,
  DT_BFLOAT16 = 14,
  DT_QINT16 = 15,
  DT_QUINT16 = 16,
  DT_UINT16 = 17,
  DT_COMPLEX128 = 18,
  DT_HALF = 19,
  DT_RESOURCE = 20,
  DT_VARIANT = 21,
  DT_UINT32 = 22,
  DT_UINT64 = 23,
  DT_FLOAT8_E5M2 = 24,
  DT_FLOAT8_E4M3FN = 25,
  DT_FLOAT8_E4M3FNUZ = 26,
  DT_FLOAT8_E4M3B11FNUZ = 27,
  DT_FLOAT8_E5M2FNUZ = 28,
  DT_INT4 = 29,
  DT_UINT4 = 30,
  DT_INT2 = 31,
  DT_UINT2 = 32,
};

// Bytes of one element in a tensor's buffer and in tensor_content; 0 for a dtype without a fixed
// size (string) or one that cannot be sent (resource, variant, references, unknown numbers).
size_t ElementSize(DataType dtype);

// TensorProto's fields that hold elements, by field number.
enum class ValueField : uint8_t {
  kNone = 0,
  kFloat = 5,
  kDouble = 6,
  kInt = 7,
  kString = 8,
  kScomplex = 9,
  kInt64 = 10,
  kBool = 11,
  kDcomplex = 12,
  kHalf = 13,
  kUint32 = 16,
  kUint64 = 17,
  kFloat8 = 18,
};

// The typed field that holds the elements of `dtype`; kNone if the dtype cannot be sent.
ValueField ValueFieldOf(DataType dtype);

// 2 for fields of complex numbers, 1 for others.
constexpr int64_t ValuesPerElement(ValueField field) {
  return field == ValueField::kScomplex || field == ValueField::kDcomplex ? 2 : 1;
}

// Return the dtype with this name in an export's record, such as "float32", or in the Open
// Inference Protocol, such as "FP32". Return DT_INVALID for an unknown name.
DataType RecordedDataType(std::string_view name);
DataType InferDataType(std::string_view datatype);

// Returns "" for a dtype that the Open Inference Protocol lacks.
std::string_view InferDatatypeName(DataType dtype);

// Calls visit(T()) with the dtype's C++ type. Returns false, without a call, for dtypes without a
// C++ type, and for DT_BOOL and DT_STRING.
template <typename Visit>
bool VisitNumber(DataType dtype, Visit&& visit) {
  switch (dtype) {
    case DT_FLOAT:
      return visit(float{}), true;
    case DT_DOUBLE:
      return visit(double{}), true;
    case DT_INT8:
      return visit(int8_t{}), true;
    case DT_INT16:
      return visit(int16_t{}), true;
    case DT_INT32:
      return visit(int32_t{}), true;
    case DT_INT64:
      return visit(int64_t{}), true;
    case DT_UINT8:
      return visit(uint8_t{}), true;
    case DT_UINT16:
      return visit(uint16_t{}), true;
    case DT_UINT32:
      return visit(uint32_t{}), true;
    case DT_UINT64:
      return visit(uint64_t{}), true;
    default:
      return false;
  }
}

// "DT_INT64"; "DT_INT64_REF" for a reference; "dtype 77" for an unknown number.
std::string DataTypeName(DataType dtype);

// `text`, which must be valid UTF-8, in double quotes; cut off with "..." after about 100 bytes.
std::string Quoted(std::string_view text);

// Shortens a TensorFlow message, which may quote a request at length, to about 1000 bytes and
// "..."; if it is not valid UTF-8, every byte beyond ASCII becomes \xff.
std::string Readable(std::string_view text);

// "[2,3]"; "[2,3,...]" after 16 dimensions.
std::string ShapeName(Span<int64_t> dims);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_DATA_TYPE_H_
