// Converts a column's values into elements as tensorflow::Tensor::FromProto does.
//
// A tensor_content that is not empty must have the exact size. Otherwise the dtype's typed field
// counts: a short list repeats its last value; an empty list gives zeros, false, or empty strings.
//
// Stricter than FromProto in three cases where FromProto would silently use data other than what
// was sent: unknown_rank (it ignores the flag), more values than elements (it drops them), values
// for a shape without elements (it drops them too). Resources and variants are refused as well.
#ifndef COLCAST_SERVER_WIRE_TENSOR_VALUES_H_
#define COLCAST_SERVER_WIRE_TENSOR_VALUES_H_

#include <cstdint>
#include <vector>

#include "server/wire/predict_request.h"
#include "server/wire/reader.h"

namespace colcast {

// The number of elements of the column's shape. Returns INVALID_ARGUMENT, naming the input, for an
// unknown rank, a negative dimension, more than 254 dimensions, or a product that overflows int64.
Status ElementCount(const Column& column, int64_t* count);

// The most bytes that a list shorter than its shape may fill by repeating its last value: without a
// limit, a request of a hundred bytes could ask for terabytes.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 30;

// Checks by sizes alone that the column can fill `count` elements; call before allocating. Errors
// name the input: INVALID_ARGUMENT if the dtype cannot be sent (invalid, unknown, resource,
// variant, reference), if tensor_content has another size, or if there are more values than
// elements; RESOURCE_EXHAUSTED beyond kMaxRepeatedBytes.
Status CheckValues(const Column& column, int64_t count);

// Writes `count` elements to `out`, which must have count * ElementSize(dtype) bytes and the
// element's alignment. Not for DT_STRING. Checks what CheckValues() checks, and that bools in
// tensor_content are 0 or 1; on failure `out` is unspecified.
Status CopyValues(const Column& column, int64_t count, void* out);

// Receives the elements of a DT_STRING column.
class StringVisitor {
 public:
  virtual ~StringVisitor() = default;

  // Element `index` has this value. Called once for each index, in order, except that the elements
  // after the last value sent are passed in one Repeat().
  virtual void Set(int64_t index, const Bytes& value) = 0;

  // The elements [begin, end) equal element begin - 1; they are empty strings if begin is 0.
  virtual void Repeat(int64_t begin, int64_t end) = 0;
};

// Passes `count` strings to `visitor`, a StringVisitor; if its class is final, calls for string_val
// are not virtual. Checks what CheckValues() checks, and that tensor_content, if used, holds
// exactly `count` lengths and then their bytes; on failure nothing is visited.
template <typename Visitor>
Status VisitStrings(const Column& column, int64_t count, Visitor* visitor);

// Adds views of the column's `count` strings, the repeated ones included. Errors are those of
// VisitStrings().
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

// Calls visit(string) for at most `most` strings, each after its RawStringLength. Returns the bytes
// consumed: all of them, if `raw` is well-formed.
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
        if (!reader.SkipValue(tag, kMaxDepth)) return;
        if (tag == unpacked_tag) visit(from_here.Sub(0, from_here.size() - reader.Rest().size()));
      }
    }
  }
}

Status CheckStrings(const Column& column, int64_t count);
Status VisitStringContent(const Column& column, int64_t count, StringVisitor* visitor);

template <typename Visitor>
Status VisitStrings(const Column& column, int64_t count, Visitor* visitor) {
  if (Status status = CheckStrings(column, count); !status.ok()) return status;
  if (column.values.stored != nullptr) {
    column.values.stored->Visit(visitor);
    return OkStatus();
  }
  if (!column.values.tensor_content.empty()) return VisitStringContent(column, count, visitor);
  int64_t next = 0;
  ForEachRecord(column.values, ValueField::kString,
                [&](const Bytes& value) { visitor->Set(next++, value); });
  if (next < count) visitor->Repeat(next, count);
  return OkStatus();
}

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_TENSOR_VALUES_H_
