#include "server/wire/column.h"

#include <algorithm>

namespace colcast {
namespace {

std::string Input(const Column& column) { return "input " + Quoted(column.name); }

// Decodes at most `capacity` varints of several packed bodies, converts each to T by `convert`, and
// writes them to `out`.
template <typename T, typename Convert>
class VarintCopier {
 public:
  VarintCopier(T* out, int64_t capacity, Convert convert)
      : out_(out), end_(out + capacity), convert_(convert) {}

  T* out() const { return out_; }

  void Copy(const Bytes& body) {
    Reader reader(body.contiguous() ? CopyMost(body) : body);
    uint64_t value;
    while (out_ != end_ && !reader.done() && reader.ReadVarint(&value)) *out_++ = convert_(value);
  }

 private:
  // Decodes varints, eight at a time where possible, while no read or write can cross the end of
  // `body` or `out`. Returns the bytes not decoded.
  Bytes CopyMost(const Bytes& body) {
    const uint8_t* at = body.data();
    const uint8_t* const end = at + body.size();
    while (end - at >= 16 && end_ - out_ >= 8) {
      const uint64_t word = LoadEightBytes(at);
      if ((word & kContinuationBits) == 0) {
        for (int i = 0; i < 8; ++i) out_[i] = convert_(at[i]);
        out_ += 8;
        at += 8;
      } else {
        uint64_t value;
        at = ReadVarintUnchecked(at, &value);
        *out_++ = convert_(value);
      }
    }
    return Bytes(at, end - at);
  }

  T* out_;
  T* const end_;
  const Convert convert_;
};

// Decodes the column's varints and returns how many elements were written.
template <typename T, typename Convert>
int64_t CopyVarints(const Column& column, int64_t count, void* out, Convert convert) {
  T* const begin = static_cast<T*>(out);
  VarintCopier<T, Convert> copier(begin, count, convert);
  ForEachRecord(column.values, ValueFieldOf(column.dtype),
                [&](const Bytes& body) { copier.Copy(body); });
  return copier.out() - begin;
}

template <typename T>
int64_t CopyIntegers(const Column& column, int64_t count, void* out) {
  return CopyVarints<T>(column, count, out, [](uint64_t value) { return static_cast<T>(value); });
}

int64_t CopyBools(const Column& column, int64_t count, void* out) {
  return CopyVarints<bool>(column, count, out, [](uint64_t value) { return value != 0; });
}

// Copies values that have the same layout on the wire as in memory. Drops an incomplete complex
// number.
int64_t CopyFixed(const Column& column, int64_t count, void* out) {
  const size_t capacity = count * ElementSize(column.dtype);
  size_t size = 0;
  ForEachRecord(column.values, ValueFieldOf(column.dtype), [&](const Bytes& body) {
    const size_t part = std::min(body.size(), capacity - size);
    body.Sub(0, part).CopyTo(static_cast<uint8_t*>(out) + size);
    size += part;
  });
  return static_cast<int64_t>(size / ElementSize(column.dtype));
}

int64_t CopyTypedValues(const Column& column, int64_t count, void* out) {
  switch (ValueFieldOf(column.dtype)) {
    case ValueField::kInt:
    case ValueField::kHalf:
    case ValueField::kInt64:
    case ValueField::kUint32:
    case ValueField::kUint64:
      switch (ElementSize(column.dtype)) {
        case 1:
          return CopyIntegers<uint8_t>(column, count, out);
        case 2:
          return CopyIntegers<uint16_t>(column, count, out);
        case 4:
          return CopyIntegers<uint32_t>(column, count, out);
        default:
          return CopyIntegers<uint64_t>(column, count, out);
      }
    case ValueField::kBool:
      return CopyBools(column, count, out);
    default:
      return CopyFixed(column, count, out);
  }
}

// Fills elements [written, count) with the last one written, or with zeros if there is none.
void RepeatLast(size_t element_size, int64_t written, int64_t count, void* out) {
  auto* const begin = static_cast<uint8_t*>(out);
  size_t done = written * element_size;
  const size_t size = count * element_size;
  if (done == size) return;
  if (done == 0) {
    std::memset(begin, 0, size);
    return;
  }
  // Doubles the filled part with each copy, so that there are few, large copies.
  const uint8_t* const last = begin + done - element_size;
  while (done < size) {
    const size_t part = std::min(size - done, static_cast<size_t>(begin + done - last));
    std::memcpy(begin + done, last, part);
    done += part;
  }
}

// Reads one of the lengths at the start of a string column's tensor_content. A length has at most
// five bytes; the upper bits of the fifth are ignored.
bool ReadStringLength(Reader* reader, size_t* length) {
  const size_t left = reader->Rest().size();
  uint64_t value;
  if (!reader->ReadVarint(&value) || left - reader->Rest().size() > 5) return false;
  *length = static_cast<uint32_t>(value);
  return true;
}

// Bools in tensor_content are one byte each, which must be 0 or 1.
Status CheckBools(const Column& column, int64_t count, const void* bools) {
  const auto* const begin = static_cast<const uint8_t*>(bools);
  const auto* const wrong = std::find_if(begin, begin + count, [](uint8_t b) { return b > 1; });
  if (wrong == begin + count) return OkStatus();
  return InvalidArgument(Input(column), ": byte ", wrong - begin, " of its values is ", int{*wrong},
                         ", but a bool is 0 or 1");
}

class StringList final : public StringVisitor {
 public:
  explicit StringList(std::vector<Bytes>* strings) : strings_(strings) {}
  void Set(int64_t, const Bytes& value) override { strings_->push_back(value); }

 private:
  std::vector<Bytes>* const strings_;
};

int64_t BytesPerElement(DataType dtype) {
  constexpr int64_t kStringObject = 24;  // size of tensorflow::tstring
  return dtype == DT_STRING ? kStringObject : static_cast<int64_t>(ElementSize(dtype));
}

const char* FieldName(uint32_t number) {
  constexpr const char* kNames[] = {"",
                                    "",
                                    "",
                                    "",
                                    "",
                                    "float_val",
                                    "double_val",
                                    "int_val",
                                    "string_val",
                                    "scomplex_val",
                                    "int64_val",
                                    "bool_val",
                                    "dcomplex_val",
                                    "half_val",
                                    "",
                                    "",
                                    "uint32_val",
                                    "uint64_val",
                                    "float8_val"};
  return kNames[number];
}

Status CheckContent(const Column& column, int64_t count) {
  const size_t size = column.values.tensor_content.size();
  if (column.dtype == DT_STRING) {
    // Each string takes at least one byte, its length.
    if (size >= static_cast<size_t>(count) && count > 0) return OkStatus();
    return InvalidArgument(Input(column), ": tensor_content of ", size, " bytes cannot hold ",
                           count, " strings");
  }
  const size_t element_size = ElementSize(column.dtype);
  if (size % element_size == 0 && size / element_size == static_cast<size_t>(count)) {
    return OkStatus();
  }
  return InvalidArgument(Input(column), ": tensor_content has ", size,
                         " bytes, but its shape needs ", count, " elements of ", element_size,
                         " bytes (", DataTypeName(column.dtype), ")");
}

}  // namespace

Status ElementCount(const Column& column, int64_t* count) {
  if (column.unknown_rank) return InvalidArgument(Input(column), ": its shape has unknown rank");
  if (column.dims.size() > kMaxDimensions) {
    return InvalidArgument(Input(column), ": more than ", kMaxDimensions, " dimensions");
  }
  *count = 1;
  for (int64_t dim : column.dims) {
    if (dim < 0) {
      return InvalidArgument(Input(column), ": dimension ", dim, " in shape ",
                             ShapeName(column.dims));
    }
    if (__builtin_mul_overflow(*count, dim, count)) {
      return InvalidArgument(Input(column), ": more elements than int64 can count in shape ",
                             ShapeName(column.dims));
    }
  }
  return OkStatus();
}

Status CheckValues(const Column& column, int64_t count) {
  const ValueField field = ValueFieldOf(column.dtype);
  if (field == ValueField::kNone) {
    return InvalidArgument(Input(column), ": ", DataTypeName(column.dtype), " cannot be sent");
  }
  if (column.values.stored != nullptr) return OkStatus();
  const bool has_content = !column.values.tensor_content.empty();
  if (column.values.ignored_field != 0) {
    return InvalidArgument(
        Input(column), ": it has values in ", FieldName(column.values.ignored_field), ", but ",
        DataTypeName(column.dtype), " is read from ",
        has_content ? "tensor_content" : FieldName(static_cast<uint32_t>(field)));
  }
  if (has_content) return CheckContent(column, count);
  const int64_t sent = column.values.count / ValuesPerElement(field);
  if (sent > count) {
    return InvalidArgument(Input(column), ": ", sent, " values were sent, but shape ",
                           ShapeName(column.dims), " has ", count, " elements");
  }
  if (sent < count && count > kMaxRepeatedBytes / BytesPerElement(column.dtype)) {
    return ResourceExhausted(Input(column), ": ", sent, " values were sent for shape ",
                             ShapeName(column.dims), ", repeating them would fill more than ",
                             kMaxRepeatedBytes >> 20, " MiB");
  }
  return OkStatus();
}

Status CopyValues(const Column& column, int64_t count, void* out) {
  if (Status status = CheckValues(column, count); !status.ok()) return status;
  if (column.dtype == DT_STRING) return Internal(Input(column), ": strings must be visited");
  if (count == 0) return OkStatus();
  if (column.values.stored != nullptr) {
    column.values.stored->Copy(nullptr, out);
    return OkStatus();
  }
  if (!column.values.tensor_content.empty()) {
    column.values.tensor_content.CopyTo(out);
    return column.dtype == DT_BOOL ? CheckBools(column, count, out) : OkStatus();
  }
  const int64_t written = CopyTypedValues(column, count, out);
  RepeatLast(ElementSize(column.dtype), written, count, out);
  return OkStatus();
}

Status AddStrings(const Column& column, int64_t count, std::vector<Bytes>* strings) {
  StringList list(strings);
  return VisitStrings(column, count, &list);
}

double RepeatedStringBytes(const Column& column, int64_t count) {
  const ColumnValues& values = column.values;
  const bool complete = values.stored != nullptr || values.count >= count;
  if (complete || !values.tensor_content.empty()) return 0;
  return static_cast<double>(count - values.count) * LastString(values).size();
}

Bytes LastString(const ColumnValues& values) {
  Bytes last;
  ForEachRecord(values, ValueField::kString, [&](const Bytes& value) { last = value; });
  return last;
}

Status CheckStrings(const Column& column, int64_t count) {
  if (Status status = CheckValues(column, count); !status.ok()) return status;
  if (column.dtype != DT_STRING) return Internal(Input(column), ": not a string column");
  return OkStatus();
}

Status VisitStringContent(const Column& column, int64_t count, StringVisitor* visitor) {
  const Bytes& content = column.values.tensor_content;
  Reader lengths(content);
  size_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    size_t length;
    if (!ReadStringLength(&lengths, &length)) {
      return InvalidArgument(Input(column), ": tensor_content of ", content.size(),
                             " bytes ends or is malformed at the length of string ", i, " of ",
                             count);
    }
    total += length;
  }
  if (total != lengths.Rest().size()) {
    return InvalidArgument(Input(column), ": the ", count, " strings in tensor_content need ",
                           total, " bytes after their lengths, ", lengths.Rest().size(),
                           " were sent");
  }
  size_t offset = content.size() - total;
  lengths = Reader(content);
  for (int64_t i = 0; i < count; ++i) {
    size_t length = 0;
    if (!ReadStringLength(&lengths, &length)) break;
    visitor->Set(i, content.Sub(offset, length));
    offset += length;
  }
  return OkStatus();
}

}  // namespace colcast
