// A column's values, turned into elements as tensorflow::Tensor::FromProto does.
//
// tensor_content, when not empty, must have the exact size. Otherwise the typed field of the dtype
// counts: a short list repeats its last value; an empty one gives zeros, false, empty strings.
//
// Stricter than FromProto in three points, where it would silently answer for other data than was
// sent: unknown_rank (it ignores the flag), more values than elements (it drops them), any values
// for a shape without elements (it drops them, too). Resources and variants are refused as well.
#ifndef COLCAST_SERVER_WIRE_TENSOR_VALUES_H_
#define COLCAST_SERVER_WIRE_TENSOR_VALUES_H_

#include <cstdint>

#include "server/wire/predict_request.h"
#include "server/wire/reader.h"

namespace colcast {

// The number of elements of the column's shape. INVALID_ARGUMENT, naming the input: unknown rank,
// a negative dimension, more than 254 dimensions, or a product over int64.
Status ElementCount(const Column& column, int64_t* count);

// The most that a list shorter than its shape may fill by repeating its last value: without a limit
// a hundred bytes could ask for terabytes.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 30;

// Whether the column can fill `count` elements, from sizes alone and without reading the values:
// ask before you allocate. All errors name the input. INVALID_ARGUMENT if its dtype cannot be sent
// (invalid, unknown, resource, variant, reference), if tensor_content has another size, or if there
// are more values than elements; RESOURCE_EXHAUSTED beyond kMaxRepeatedBytes.
Status CheckValues(const Column& column, int64_t count);

// Writes `count` elements to `out`, which has room for count * ElementSize(dtype) bytes and the
// alignment of the element. Not for DT_STRING. Checks what CheckValues checks, and that bools in
// tensor_content are 0 or 1; `out` holds anything if they are not.
Status CopyValues(const Column& column, int64_t count, void* out);

// Receives the elements of a DT_STRING column.
class StringVisitor {
 public:
  virtual ~StringVisitor() = default;

  // Element `index` has this value. Comes once for each index, in order, except that the elements
  // after the last value sent come as one Repeat.
  virtual void Set(int64_t index, const Bytes& value) = 0;

  // The elements [begin, end) equal element begin - 1, or are empty strings if begin is 0.
  virtual void Repeat(int64_t begin, int64_t end) = 0;
};

// Hands `count` strings to `visitor`, a StringVisitor: a final one is called directly for those in
// string_val. Checks what CheckValues checks, and that tensor_content, if used, holds exactly
// `count` lengths and then their bytes; nothing is visited if it does not.
template <typename Visitor>
Status VisitStrings(const Column& column, int64_t count, Visitor* visitor);

// The bytes of the strings that are made by repeating the last one, if a DT_STRING column has to
// fill `count` elements. A double, because it does not overflow.
double RepeatedStringBytes(const Column& column, int64_t count);

// Implementation details follow.

// The wire type of one value that is not packed.
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

// Reads strings that come each behind its RawStringLength, at most `most`, and calls visit(string)
// for each. Returns how many bytes they took: all, if they are right.
template <typename Visit>
size_t ReadRawStrings(const Bytes& raw, int64_t most, Visit&& visit) {
  Reader reader(raw);
  size_t taken = 0;
  for (; most > 0 && reader.left() >= sizeof(RawStringLength); --most) {
    RawStringLength length;
    reader.Take(sizeof(length)).CopyTo(&length);
    if (length > reader.left()) break;
    visit(reader.Take(length));
    taken = raw.size() - reader.left();
  }
  return taken;
}

// Calls visit(body) for each record of `field`, in order: a packed record's body, which may be
// empty, or a single value without its tag. The records must be well-formed.
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
        if (tag == unpacked_tag) visit(from_here.Sub(0, from_here.size() - reader.left()));
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
