// Values that the server holds already: rows of an item table, copied only when needed.
#ifndef COLCAST_SERVER_WIRE_STORED_VALUES_H_
#define COLCAST_SERVER_WIRE_STORED_VALUES_H_

#include <cstdint>

#include "server/wire/span.h"

namespace colcast {

class StringVisitor;

// The rows of a table that make up a request's columns.
struct StoredRows {
  uint64_t table = 0;  // unique in this process; newer tables have greater numbers
  // One per row of the columns; within a table, a number always means the same values.
  Span<uint32_t> numbers;
};

// The values of one column, with its dtype and shape.
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

  // The same for all rows.
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
