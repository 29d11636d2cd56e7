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

// "DT_INT64"; "DT_INT64_REF" for a reference; "dtype 77" for an unknown number.
std::string DataTypeName(DataType dtype);

// `text`, which is valid UTF-8, in double quotes; "..." after about 100 bytes.
std::string Quoted(std::string_view text);

// Shortens a TensorFlow message, which may quote a request at length, to about 1000 bytes and
// "..."; if it is not valid UTF-8, every byte beyond ASCII becomes \xff.
std::string Readable(std::string_view text);

// "[2,3]"; "[2,3,...]" after 16 dimensions.
std::string ShapeName(Span<int64_t> dims);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_DATA_TYPE_H_
