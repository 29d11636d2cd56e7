// Values that the server has already: rows of a table, read when and as far as they are wanted.
#ifndef COLCAST_SERVER_WIRE_STORED_VALUES_H_
#define COLCAST_SERVER_WIRE_STORED_VALUES_H_

#include <cstdint>

#include "server/wire/span.h"

namespace colcast {

class StringVisitor;

// Which rows of a table a request's columns consist of.
struct StoredRows {
  uint64_t table = 0;      // no other table of this process has it; greater than those before
  Span<uint32_t> numbers;  // of each row of the columns; a number stands for the same values always
};

// Of one column. They have its dtype and fill its shape.
class StoredValues {
 public:
  virtual ~StoredValues() = default;

  const StoredRows& rows() const { return *rows_; }

  // Whether the rows' inner shape is that of the longest list among them.
  virtual bool padded() const { return false; }

  // Writes the elements of the rows at these places of the column, one row after the other. Not for
  // strings.
  virtual void Copy(Span<int64_t> places, void* out) const = 0;

  // The same for strings, numbered from 0 on. The bytes live as long as these values.
  virtual void Visit(Span<int64_t> places, StringVisitor* visitor) const = 0;

  // Of all rows.
  virtual void Copy(void* out) const = 0;
  virtual void Visit(StringVisitor* visitor) const = 0;

 protected:
  // `rows` must outlive this object.
  explicit StoredValues(const StoredRows* rows) : rows_(rows) {}

 private:
  const StoredRows* const rows_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_STORED_VALUES_H_
