#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "server/wire/column.h"
#include "server/wire/data_type.h"
#include "server/wire/infer.h"
#include "server/wire/reader.h"

namespace colcast {
namespace {

// The fields of InferTensorContents, by number.
enum Contents : uint32_t {
  kRawOnly = 0,
  kBools = 1,
  kInts = 2,
  kInt64s = 3,
  kUints = 4,
  kUint64s = 5,
  kFp32s = 6,
  kFp64s = 7,
  kBytes = 8,
};

constexpr std::array<const char*, 9> kContentsNames = {
    "raw_input_contents", "bool_contents", "int_contents",  "int64_contents", "uint_contents",
    "uint64_contents",    "fp32_contents", "fp64_contents", "bytes_contents"};

struct Datatype {
  std::string_view name;
  DataType dtype;
  Contents contents;
};

constexpr Datatype kDatatypes[] = {
    {"FP32", DT_FLOAT, kFp32s},    {"INT64", DT_INT64, kInt64s},    {"BYTES", DT_STRING, kBytes},
    {"INT32", DT_INT32, kInts},    {"FP64", DT_DOUBLE, kFp64s},     {"BOOL", DT_BOOL, kBools},
    {"INT8", DT_INT8, kInts},      {"INT16", DT_INT16, kInts},      {"UINT8", DT_UINT8, kUints},
    {"UINT16", DT_UINT16, kUints}, {"UINT32", DT_UINT32, kUints},   {"UINT64", DT_UINT64, kUint64s},
    {"FP16", DT_HALF, kRawOnly},   {"BF16", DT_BFLOAT16, kRawOnly},
};

std::string Input(const Column& column) { return "input " + Quoted(column.name); }

const Datatype* Find(DataType dtype) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.dtype == dtype) return &datatype;
  }
  return nullptr;
}

Status WrongSize(const Column& column, int64_t count, size_t size) {
  return InvalidArgument(Input(column), ": ", size, " bytes were sent, but shape ",
                         ShapeName(column.dims), " of ", InferDatatypeName(column.dtype), " needs ",
                         count, " elements of ", ElementSize(column.dtype), " bytes");
}

Status CheckBools(const Column& column, const Bytes& raw) {
  Status status;
  size_t index = 0;
  raw.ForEachPiece([&](const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; ++i, ++index) {
      if (data[i] <= 1 || !status.ok()) continue;
      status = InvalidArgument(Input(column), ": byte ", index, " is ", int{data[i]},
                               ", expected 0 or 1 for a BOOL");
    }
  });
  return status;
}

Status SetRawStrings(const Bytes& raw, int64_t count, Column* column) {
  if (static_cast<uint64_t>(count) > raw.size() / sizeof(RawStringLength)) {
    return InvalidArgument(Input(*column), ": ", raw.size(), " bytes were sent, but shape ",
                           ShapeName(column->dims), " needs ", count,
                           " strings, each after its length of 4 bytes");
  }
  ColumnValues& values = column->values;
  const size_t taken = ReadRawStrings(raw, count, [&](const Bytes&) { ++values.count; });
  if (values.count < count) {
    return InvalidArgument(Input(*column), ": its ", raw.size(), " bytes end inside of string ",
                           values.count, " of ", count);
  }
  values.packed = true;
  values.payload = raw;
  if (taken == raw.size()) return OkStatus();
  return InvalidArgument(Input(*column), ": ", raw.size() - taken, " bytes follow the ", count,
                         " strings of shape ", ShapeName(column->dims));
}

// The values of one typed field, merged over all messages. Strings stay in the messages.
class TypedValues {
 public:
  TypedValues(Contents contents, Column* column) : contents_(contents), column_(column) {}

  // Adds one well-formed InferTensorContents.
  Status Add(const Bytes& message) {
    Reader reader(message);
    uint32_t tag;
    while (!reader.done() && reader.ReadTag(&tag)) {
      const uint32_t field = FieldNumberOf(tag);
      Bytes body = reader.Rest();
      if (WireTypeOf(tag) == kLengthType) {
        reader.ReadBytes(&body);
      } else {
        reader.SkipValue(tag);
        body = body.Sub(0, body.size() - reader.Rest().size());
      }
      if (!HasValues(tag, body)) continue;
      if (field != contents_) {
        return InvalidArgument(Input(*column_), ": its values are in ", kContentsNames[field], ", ",
                               InferDatatypeName(column_->dtype), " is sent in ",
                               kContentsNames[contents_]);
      }
      AddBody(body);
    }
    return OkStatus();
  }

  void Finish(DecodedRequest* request) {
    if (first_.empty()) return;
    ColumnValues& values = column_->values;
    values.packed = true;
    values.payload = joined_.empty() ? first_ : Bytes(request->Keep(std::move(joined_)));
    CountPacked(UnpackedTypeOfContents(contents_), values.payload, &values.count);
  }

 private:
  // As in protobuf, a known field with another wire type counts as unknown.
  static bool HasValues(uint32_t tag, const Bytes& body) {
    const uint32_t field = FieldNumberOf(tag);
    if (field < kBools || field > kBytes) return false;
    if (WireTypeOf(tag) == UnpackedTypeOfContents(field)) return true;
    return WireTypeOf(tag) == kLengthType && !body.empty();
  }

  void AddBody(const Bytes& body) {
    if (contents_ == kBytes) {
      ++column_->values.count;
      return;
    }
    if (first_.empty()) {
      first_ = body;
      return;
    }
    if (joined_.empty()) joined_ = first_.ToString();
    joined_ += body.ToString();
  }

  const Contents contents_;
  Column* const column_;
  Bytes first_;
  std::string joined_;  // the packed values, if they are in several records
};

template <typename Element, typename Sent>
Status CheckRange(const Column& column) {
  using Limits = std::numeric_limits<Element>;
  Reader reader(column.values.payload);
  uint64_t varint;
  for (int64_t i = 0; !reader.done() && reader.ReadVarint(&varint); ++i) {
    const auto value = static_cast<Sent>(varint);
    if (value >= Limits::min() && value <= Limits::max()) continue;
    return InvalidArgument(Input(column), ": value ", i, " is ", value, ", ",
                           InferDatatypeName(column.dtype), " ranges from ", int{Limits::min()},
                           " to ", int{Limits::max()});
  }
  return OkStatus();
}

// Checks that values sent as 32 bits fit their narrower type.
Status CheckRange(const Column& column) {
  switch (column.dtype) {
    case DT_INT8:
      return CheckRange<int8_t, int32_t>(column);
    case DT_INT16:
      return CheckRange<int16_t, int32_t>(column);
    case DT_UINT8:
      return CheckRange<uint8_t, uint32_t>(column);
    case DT_UINT16:
      return CheckRange<uint16_t, uint32_t>(column);
    default:
      return OkStatus();
  }
}

}  // namespace

WireType UnpackedTypeOfContents(uint32_t field) {
  return field == kFp32s   ? kFixed32Type
         : field == kFp64s ? kFixed64Type
         : field == kBytes ? kLengthType
                           : kVarintType;
}

DataType InferDataType(std::string_view datatype) {
  for (const Datatype& known : kDatatypes) {
    if (known.name == datatype) return known.dtype;
  }
  return DT_INVALID;
}

std::string_view InferDatatypeName(DataType dtype) {
  const Datatype* const known = Find(dtype);
  return known == nullptr ? std::string_view() : known->name;
}

Status ReadInferDatatype(std::string_view datatype, Column* column) {
  column->dtype = InferDataType(datatype);
  if (column->dtype != DT_INVALID) return OkStatus();
  return InvalidArgument(Input(*column), ": datatype ", Quoted(datatype),
                         "; expected BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32, FP64, BF16 "
                         "or BYTES");
}

Status SetRawValues(const Bytes& raw, Column* column) {
  int64_t count = 0;
  if (Status status = ElementCount(*column, &count); !status.ok()) return status;
  if (column->dtype == DT_STRING) return SetRawStrings(raw, count, column);
  const size_t element_size = ElementSize(column->dtype);
  if (raw.size() % element_size != 0 || raw.size() / element_size != static_cast<size_t>(count)) {
    return WrongSize(*column, count, raw.size());
  }
  column->values.tensor_content = raw;
  return column->dtype == DT_BOOL ? CheckBools(*column, raw) : OkStatus();
}

Status SetTypedValues(DecodedRequest* request, Column* column) {
  int64_t count = 0;
  if (Status status = ElementCount(*column, &count); !status.ok()) return status;
  const Contents contents = Find(column->dtype)->contents;
  if (contents == kRawOnly) {
    return InvalidArgument(Input(*column), ": ", InferDatatypeName(column->dtype),
                           " is sent in raw_input_contents only");
  }
  TypedValues values(contents, column);
  for (const Bytes& message : column->values.messages) {
    if (Status status = values.Add(message); !status.ok()) return status;
  }
  if (contents != kBytes) column->values.messages.clear();
  values.Finish(request);
  if (column->values.count != count) {
    return InvalidArgument(Input(*column), ": ", column->values.count, " values were sent in ",
                           kContentsNames[contents], ", shape ", ShapeName(column->dims), " has ",
                           count, " elements");
  }
  return CheckRange(*column);
}

void SetInferVersion(std::string_view version, ModelSpec* spec) {
  spec->version.reset();
  spec->version_label.reset();
  if (version.empty()) return;
  int64_t number = 0;
  const char* const end = version.data() + version.size();
  const auto read = std::from_chars(version.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) {
    spec->version = number;
  } else {
    spec->version_label = version;
  }
}

Status CheckInferParameter(std::string_view name) {
  for (const std::string_view refused : {"sequence_id", "shared_memory_region", "classification"}) {
    if (name != refused) continue;
    return InvalidArgument("parameter ", Quoted(name), ": the server has no ",
                           name == "sequence_id"      ? "sequences"
                           : name == "classification" ? "classification over this protocol"
                                                      : "shared memory");
  }
  return OkStatus();
}

}  // namespace colcast
