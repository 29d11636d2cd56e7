// Where in the message the values of one column lie.
#ifndef COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
#define COLCAST_SERVER_WIRE_COLUMN_VALUES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "server/wire/bytes.h"

namespace colcast {

// TensorProto's fields that hold values, by field number.
enum class ValueField : uint8_t {
  kTensorContent = 4,
  kFloat = 5,
  kDouble = 6,
  kInt = 7,
  kString = 8,
  kScomplex = 9,
  kInt64 = 10,
  kBool = 11,
  kDcomplex = 12,
  kHalf = 13,
  kResourceHandle = 14,
  kVariant = 15,
  kUint32 = 16,
  kUint64 = 17,
  kFloat8 = 18,
};

// Some consecutive values of one repeated field, without tags: the payload of a packed field or of
// a single unpacked value, or, for string_val, the bytes of the record(s) with their tags.
struct ValueRun {
  ValueField field;
  int64_t count;  // values in the run
  Bytes bytes;    // known to be well-formed
};

struct ColumnValues {
  Bytes tensor_content;        // the last one sent
  Bytes float8;                // float8_val, the last one sent
  std::vector<ValueRun> runs;  // in the order sent

  void Clear() {
    tensor_content = Bytes();
    float8 = Bytes();
    runs.clear();
  }
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
