// Where the values of one column lie.
#ifndef COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
#define COLCAST_SERVER_WIRE_COLUMN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/data_type.h"
#include "server/wire/stored_values.h"

namespace colcast {

// Keeps the memory for the next request, unless only an unusually large one would need it.
template <typename Container>
void ClearForReuse(Container* container) {
  constexpr size_t kMaxKeptElements = 4096;
  if (container->capacity() > kMaxKeptElements) {
    *container = Container();
  } else {
    container->clear();
  }
}

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

// 2 for the fields of complex numbers.
int64_t ValuesPerElement(ValueField field);

// The length before a string in the Open Inference Protocol, little-endian.
using RawStringLength = uint32_t;

// Everything here is known to be well-formed.
struct ColumnValues {
  Bytes tensor_content;

  // The values of the dtype's typed field: how many, and where.
  int64_t count = 0;
  bool packed = false;          // all of them lie in `payload`, the body of one packed record ...
  Bytes payload;                // ... or, of a DT_STRING column, each behind its RawStringLength
  std::vector<Bytes> messages;  // otherwise: the records that hold them, in order, among others
  std::vector<Bytes> strings;   // or the values of a DT_STRING column that no message holds

  // Or these, and nothing of the above; they must outlive the column.
  const StoredValues* stored = nullptr;

  // Adds to `strings`.
  void AddString(const Bytes& value) {
    strings.push_back(value);
    ++count;
  }

  void Clear() {
    tensor_content = Bytes();
    count = 0;
    packed = false;
    payload = Bytes();
    ClearForReuse(&messages);
    ClearForReuse(&strings);
    stored = nullptr;
  }
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
