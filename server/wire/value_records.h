// The values of one column, record by record.
#ifndef COLCAST_SERVER_WIRE_VALUE_RECORDS_H_
#define COLCAST_SERVER_WIRE_VALUE_RECORDS_H_

#include <cstdint>

#include "server/wire/column_values.h"
#include "server/wire/reader.h"

namespace colcast {

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

// Calls visit(body) for each record of `field`, in order: a packed record's body, which may be
// empty, or a single value without its tag. The records must be well-formed.
template <typename Visit>
void ForEachRecord(const ColumnValues& values, ValueField field, Visit&& visit) {
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

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_VALUE_RECORDS_H_
