// A request's columns: where their values are, and how they become elements, by the rules of
// tensorflow::Tensor::FromProto.
//
// A tensor_content that is not empty must have the exact size. If it is empty, the dtype's typed
// field is read: a short list repeats its last value; an empty list gives zeros, false or "".
//
// Stricter than FromProto in three cases where FromProto would silently use data other than what
// was sent: unknown_rank (it ignores the flag), more values than elements (it drops them), values
// for a shape without elements (it drops them too). Resources and variants are refused as well.
#ifndef COLCAST_SERVER_WIRE_COLUMN_H_
#define COLCAST_SERVER_WIRE_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast {

// Receives the elements of a DT_STRING column.
class StringVisitor {
 public:
  virtual ~StringVisitor() = default;

  // Receives the value of element `index`. Called once for each index, in order.
  virtual void Set(int64_t index, const Bytes& value) = 0;
};

// The rows of a table that make up a request's columns.
struct StoredRows {
  uint64_t table = 0;  // unique in this process; newer tables have greater numbers
  // One number per row of the columns. Within a table, a number always stands for the same values.
  Span<uint32_t> numbers;
};

// A column's values if the server already has them, for example as rows of an item table, with the
// column's dtype and shape. They are copied only when needed.
class StoredValues {
 public:
  virtual ~StoredValues() = default;

  const StoredRows& rows() const { return *rows_; }

  // Whether the inner shape is padded to the longest list among the rows.
  virtual bool padded() const { return false; }

  // The positions of rows in the column; null for all rows.
  using Places = const Span<int64_t>*;

  // Writes the elements of these rows, row after row. Not for strings.
  virtual void Copy(Places places, void* out) const = 0;

  // Visits the strings of these rows, numbered from 0. Their bytes live as long as this object.
  virtual void Visit(Places places, StringVisitor* visitor) const = 0;

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

// Precedes each string in the Open Inference Protocol's raw contents, little-endian.
using RawStringLength = uint32_t;

// A view of one column's values in one of several forms, already checked to be well-formed.
struct ColumnValues {
  Bytes tensor_content;

  // The number and location of the values in the dtype's typed field.
  int64_t count = 0;
  bool packed = false;  // whether `payload` holds all values
  Bytes payload;        // the body of a packed record, or strings, each after its RawStringLength
  // Read unless `packed`: messages that contain the values' records, in order, among other fields.
  std::vector<Bytes> messages;
  std::vector<Bytes> strings;  // a DT_STRING column's values, unless a message holds them

  // The number of a typed field whose values Tensor::FromProto() would ignore, because they belong
  // to another dtype or come with tensor_content. 0 if there is no such field.
  uint32_t ignored_field = 0;

  // If set, the values come from here and all fields above are empty. Must outlive the column.
  const StoredValues* stored = nullptr;

  // The number of bytes received for the column; 0 for stored values.
  size_t received_bytes() const {
    size_t bytes = tensor_content.size() + payload.size();
    for (const std::vector<Bytes>* const parts : {&messages, &strings}) {
      for (const Bytes& part : *parts) bytes += part.size();
    }
    return bytes;
  }

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

// TensorFlow's limit on a tensor's dimensions.
inline constexpr size_t kMaxDimensions = 254;

// Keeps one dimension beyond the limit, so that the check sees it.
inline void AddDim(int64_t dim, std::vector<int64_t>* dims) {
  if (dims->size() <= kMaxDimensions) dims->push_back(dim);
}

// One entry of PredictRequest.inputs: a name and its TensorProto.
struct Column {
  std::string_view name;
  DataType dtype = DT_INVALID;
  bool unknown_rank = false;
  std::vector<int64_t> dims;  // as sent; may be negative or overflow, see ElementCount()
  ColumnValues values;

  void Clear() {
    name = std::string_view();
    dtype = DT_INVALID;
    unknown_rank = false;
    ClearForReuse(&dims);
    values.Clear();
  }
};

// The number of elements of the column's shape. Returns INVALID_ARGUMENT, naming the input, for an
// unknown rank, a negative dimension, more than 254 dimensions, or a product that overflows int64.
Status ElementCount(const Column& column, int64_t* count);

// The largest column that may be filled by repeating the last value of a list that is too short.
// Without a limit, a request of a hundred bytes could ask for terabytes.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 30;

// Checks by sizes alone that the column can fill `count` elements; call before allocating. Errors
// name the input: INVALID_ARGUMENT if the dtype cannot be sent (invalid, unknown, resource,
// variant, reference), if tensor_content has the wrong size, or if there are more values than
// elements; RESOURCE_EXHAUSTED beyond kMaxRepeatedBytes.
Status CheckValues(const Column& column, int64_t count);

// Writes `count` elements to `out`, which must have count * ElementSize(dtype) bytes and the
// element's alignment. Not for DT_STRING. Checks what CheckValues() checks, and that bools in
// tensor_content are 0 or 1; on failure `out` is unspecified.
Status CopyValues(const Column& column, int64_t count, void* out);

// Passes `count` strings to `visitor`, including repeated ones. Fails, without visiting any, if
// CheckValues() fails or tensor_content is not `count` lengths followed by the strings. Make the
// visitor's class final, so that its calls are inlined.
template <typename Visitor>
Status VisitStrings(const Column& column, int64_t count, Visitor* visitor);

// Adds views of the column's `count` strings. Fails like VisitStrings().
Status AddStrings(const Column& column, int64_t count, std::vector<Bytes>* strings);

// How many bytes it takes to fill a DT_STRING column up to `count` elements by repeating its last
// string. A double, so that the product cannot overflow.
double RepeatedStringBytes(const Column& column, int64_t count);

constexpr WireType UnpackedTypeOf(ValueField field) {
  switch (field) {
    case ValueField::kFloat:
    case ValueField::kScomplex:
      return kFixed32Type;
    case ValueField::kDouble:
    case ValueField::kDcomplex:
      return kFixed64Type;
    case ValueField::kString:
      return kLengthType;
    default:
      return kVarintType;
  }
}

// Calls visit(string) for at most `most` strings, each after its RawStringLength. Returns how many
// bytes it consumed: all, unless `raw` is malformed or has more strings.
template <typename Visit>
size_t ReadRawStrings(const Bytes& raw, int64_t most, Visit&& visit) {
  Reader reader(raw);
  size_t taken = 0;
  for (; most > 0 && reader.Rest().size() >= sizeof(RawStringLength); --most) {
    RawStringLength length;
    reader.Take(sizeof(length)).CopyTo(&length);
    if (length > reader.Rest().size()) break;
    visit(reader.Take(length));
    taken = raw.size() - reader.Rest().size();
  }
  return taken;
}

// Calls visit(body) for each record of `field`, in order. A body is the contents of a packed
// record, which may be empty, or a single value without its tag. The records must be well-formed.
template <typename Visit>
void ForEachRecord(const ColumnValues& values, ValueField field, Visit&& visit) {
  if (values.packed && field == ValueField::kString) {
    ReadRawStrings(values.payload, values.count, visit);
    return;
  }
  if (values.packed) return visit(values.payload);
  for (const Bytes& value : values.strings) visit(value);
  const auto number = static_cast<uint32_t>(field);
  const uint32_t packed_tag = MakeTag(number, kLengthType);
  const uint32_t unpacked_tag = MakeTag(number, UnpackedTypeOf(field));
  for (const Bytes& message : values.messages) {
    Reader reader(message);
    uint32_t tag;
    while (!reader.done() && reader.ReadTag(&tag)) {
      Bytes body;
      if (tag == packed_tag) {
        do {
          if (!reader.ReadBytes(&body)) return;
          visit(body);
          reader.ReadShortRecords(
              packed_tag, [&](const uint8_t* data, size_t size) { visit(Bytes(data, size)); });
        } while (reader.SkipTag(packed_tag));
      } else {
        const Bytes from_here = reader.Rest();
        if (!reader.SkipValue(tag)) return;
        if (tag == unpacked_tag) visit(from_here.Sub(0, from_here.size() - reader.Rest().size()));
      }
    }
  }
}

// Returns an empty string if there are no strings.
Bytes LastString(const ColumnValues& values);
Status CheckStrings(const Column& column, int64_t count);
Status VisitStringContent(const Column& column, int64_t count, StringVisitor* visitor);

template <typename Visitor>
Status VisitStrings(const Column& column, int64_t count, Visitor* visitor) {
  if (Status status = CheckStrings(column, count); !status.ok()) return status;
  if (column.values.stored != nullptr) {
    column.values.stored->Visit(nullptr, visitor);
    return OkStatus();
  }
  if (!column.values.tensor_content.empty()) return VisitStringContent(column, count, visitor);
  int64_t next = 0;
  ForEachRecord(column.values, ValueField::kString,
                [&](const Bytes& value) { visitor->Set(next++, value); });
  if (next == count) return OkStatus();
  const Bytes last = LastString(column.values);
  while (next < count) visitor->Set(next++, last);
  return OkStatus();
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_H_
