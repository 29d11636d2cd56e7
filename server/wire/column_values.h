// The location of one column's values.
#ifndef COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
#define COLCAST_SERVER_WIRE_COLUMN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/wire/bytes.h"
#include "server/wire/data_type.h"

namespace colcast {

class StringVisitor;

// The rows of a table that make up a request's columns.
struct StoredRows {
  uint64_t table = 0;  // unique in this process; newer tables have greater numbers
  // One per row of the columns; within a table, a number always means the same values.
  Span<uint32_t> numbers;
};

// The values of a column that the server already has, such as rows of an item table, with the
// column's dtype and shape. They are copied only when needed.
class StoredValues {
 public:
  virtual ~StoredValues() = default;

  const StoredRows& rows() const { return *rows_; }

  // Whether the inner shape is padded to the longest list among the rows.
  virtual bool padded() const { return false; }

  // Writes the elements of the rows at `places` in the column, row after row. Not for strings.
  virtual void Copy(Span<int64_t> places, void* out) const = 0;

  // Visits the strings of those rows, numbered from 0. Their bytes live as long as this object.
  virtual void Visit(Span<int64_t> places, StringVisitor* visitor) const = 0;

  // Copy() and Visit() for all rows.
  virtual void Copy(void* out) const = 0;
  virtual void Visit(StringVisitor* visitor) const = 0;

 protected:
  // `rows` must outlive this object.
  explicit StoredValues(const StoredRows* rows) : rows_(rows) {}

 private:
  const StoredRows* const rows_;
};

// Empties the container but keeps its memory for the next request, unless it is unusually large.
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

// 2 for fields of complex numbers, 1 for others.
int64_t ValuesPerElement(ValueField field);

// The length before a string in the Open Inference Protocol, little-endian.
using RawStringLength = uint32_t;

// A view of one column's values in one of several forms, already checked to be well-formed.
struct ColumnValues {
  Bytes tensor_content;

  // The values of the dtype's typed field: their number and location.
  int64_t count = 0;
  bool packed = false;  // whether all values are in `payload`
  Bytes payload;        // the body of a packed record, or strings, each after its RawStringLength
  // If not packed: the records that hold the values, in order, among other fields.
  std::vector<Bytes> messages;
  std::vector<Bytes> strings;  // a DT_STRING column's values, unless a message holds them
  // The number of a typed field whose values Tensor::FromProto() would ignore: one of another
  // dtype, or beside tensor_content. 0 if there is none.
  uint32_t ignored_field = 0;

  // If set, the values come from here and all fields above are empty. Must outlive the column.
  const StoredValues* stored = nullptr;

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
    ignored_field = 0;
    stored = nullptr;
  }
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_VALUES_H_
