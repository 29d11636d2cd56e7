#include "server/wire/usual_entry.h"

#include <cstdint>
#include <cstring>

#include "server/wire/reader.h"
#include "server/wire/tensor_values.h"

namespace colcast {
namespace {

constexpr uint8_t kName = MakeTag(1, kLengthType);
constexpr uint8_t kTensor = MakeTag(2, kLengthType);
constexpr uint8_t kDtype = MakeTag(1, kVarintType);
constexpr uint8_t kShape = MakeTag(2, kLengthType);
constexpr uint8_t kDim = MakeTag(2, kLengthType);
constexpr uint8_t kSize = MakeTag(1, kVarintType);
constexpr uint8_t kContent = MakeTag(4, kLengthType);
constexpr uint8_t kString = MakeTag(8, kLengthType);
constexpr uint8_t kContinued = 0x80;  // set in a varint byte that another byte follows

// The unread bytes of an entry.
struct Rest {
  const uint8_t* at;
  const uint8_t* end;

  size_t size() const { return static_cast<size_t>(end - at); }

  bool Take(uint8_t byte) {
    if (at == end || *at != byte) return false;
    ++at;
    return true;
  }

  bool TakeNumber(uint64_t* number, int most_bytes = 9) {
    if (at != end && *at < kContinued) {  // most are lengths of a short string
      *number = *at++;
      return true;
    }
    *number = 0;
    for (int shift = 0; at != end && shift < 7 * most_bytes; shift += 7) {
      const uint8_t byte = *at++;
      *number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < kContinued) return true;
    }
    return false;
  }

  // As in protobuf, a length may have at most five bytes.
  bool TakeLength(uint64_t* length) { return TakeNumber(length, 5); }

  // Reads a length; false unless it equals the number of the bytes after it.
  bool TakeLengthOfAll() {
    uint64_t length;
    return TakeLength(&length) && length == size();
  }
};

bool ReadShape(Rest shape, Column* column) {
  while (shape.at != shape.end) {
    if (!shape.Take(kDim) || shape.at == shape.end || *shape.at > shape.size() - 1) return false;
    Rest dim{shape.at + 1, shape.at + 1 + *shape.at};
    uint64_t size = 0;
    if (dim.at != dim.end && (!dim.Take(kSize) || !dim.TakeNumber(&size) || dim.at != dim.end)) {
      return false;
    }
    AddDim(static_cast<int64_t>(size), &column->dims);
    shape.at = dim.end;
  }
  return true;
}

bool ReadStrings(Rest values, ColumnValues* out) {
  out->messages.emplace_back(values.at, values.size());
  while (values.at != values.end) {
    uint64_t length;
    if (!values.Take(kString) || !values.TakeLength(&length) || length > values.size()) {
      return false;
    }
    values.at += length;
    ++out->count;
  }
  return true;
}

bool CountPacked(ValueField field, const Bytes& body, int64_t* count) {
  switch (UnpackedTypeOf(field)) {
    case kFixed32Type:
      *count = static_cast<int64_t>(body.size() / 4);
      return body.size() % 4 == 0;
    case kFixed64Type:
      *count = static_cast<int64_t>(body.size() / 8);
      return body.size() % 8 == 0;
    default:
      return CountVarints(body, count);
  }
}

// Reads the values, which must all be in one field. The general decoder reads an entry without
// values.
bool ReadValues(Rest values, DataType dtype, ColumnValues* out) {
  if (values.at == values.end) return false;
  const Bytes from_here(values.at, values.size());
  const ValueField field = ValueFieldOf(dtype);
  if (values.Take(kContent)) {
    if (!values.TakeLengthOfAll()) return false;
    out->tensor_content = Bytes(values.at, values.size());
    return true;
  }
  if (field == ValueField::kString) return ReadStrings(values, out);
  constexpr uint32_t kMostInOneByte = 15;
  const auto number = static_cast<uint32_t>(field);
  if (field == ValueField::kNone || number > kMostInOneByte ||
      !values.Take(static_cast<uint8_t>(MakeTag(number, kLengthType))) ||
      !values.TakeLengthOfAll()) {
    return false;
  }
  out->messages.push_back(from_here);
  out->packed = true;
  out->payload = Bytes(values.at, values.size());
  return CountPacked(field, out->payload, &out->count) && out->count > 0;
}

}  // namespace

bool ReadUsualEntry(const Bytes& entry, std::string_view name, Column* column) {
  const size_t head = 2 + name.size();
  if (!entry.contiguous() || name.size() >= kContinued || entry.size() < head) return false;
  const uint8_t* const begin = entry.data();
  if (begin[0] != kName || begin[1] != name.size() ||
      std::memcmp(begin + 2, name.data(), name.size()) != 0) {
    return false;
  }
  column->name = {reinterpret_cast<const char*>(begin) + 2, name.size()};
  Rest rest{begin + head, begin + entry.size()};
  constexpr size_t kDtypeAndShape = 4;
  if (!rest.Take(kTensor) || !rest.TakeLengthOfAll() || rest.size() < kDtypeAndShape) return false;
  if (rest.at[0] != kDtype || rest.at[1] >= kContinued || rest.at[2] != kShape) return false;
  column->dtype = static_cast<DataType>(rest.at[1]);
  const size_t shape_bytes = rest.at[3];
  rest.at += kDtypeAndShape;
  if (shape_bytes >= kContinued || shape_bytes > rest.size()) return false;
  if (!ReadShape({rest.at, rest.at + shape_bytes}, column)) return false;
  rest.at += shape_bytes;
  return ReadValues(rest, column->dtype, &column->values);
}

}  // namespace colcast
