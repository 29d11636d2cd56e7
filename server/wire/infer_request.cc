#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/wire/data_type.h"
#include "server/wire/infer.h"
#include "server/wire/reader.h"

namespace colcast {
namespace {

// The fields of InferTensorContents, by number.
enum ContentsField : uint32_t {
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

ContentsField ContentsFieldOf(DataType dtype) {
  switch (dtype) {
    case DT_BOOL:
      return kBools;
    case DT_INT8:
    case DT_INT16:
    case DT_INT32:
      return kInts;
    case DT_INT64:
      return kInt64s;
    case DT_UINT8:
    case DT_UINT16:
    case DT_UINT32:
      return kUints;
    case DT_UINT64:
      return kUint64s;
    case DT_FLOAT:
      return kFp32s;
    case DT_DOUBLE:
      return kFp64s;
    case DT_STRING:
      return kBytes;
    default:
      return kRawOnly;
  }
}

// The wire type of an unpacked value in this field.
WireType UnpackedTypeOf(ContentsField field) {
  return field == kFp32s   ? kFixed32Type
         : field == kFp64s ? kFixed64Type
         : field == kBytes ? kLengthType
                           : kVarintType;
}

// The values in an input's typed fields. Strings stay in the messages, whose field 8 can be read as
// TensorProto.string_val.
struct Contents {
  bool given = false;
  uint32_t fields = 0;  // the set of fields with values
  int64_t count = 0;
  Bytes numbers;       // packed
  std::string joined;  // the packed numbers, if they are in several records

  void AddNumbers(const Bytes& body) {
    if (numbers.empty()) {
      numbers = body;
      return;
    }
    if (joined.empty()) joined = numbers.ToString();
    joined += body.ToString();
  }
};

std::string Input(const Column& column) { return "input " + Quoted(column.name); }

// Checks that the contents hold as many values as the shape, in the field for the datatype.
Status CheckContents(const Column& column, const Contents& contents) {
  int64_t count = 0;
  if (Status status = ElementCount(column, &count); !status.ok()) return status;
  const ContentsField field = ContentsFieldOf(column.dtype);
  const uint32_t others = contents.fields & ~(1u << field);
  if (others != 0) {
    return InvalidArgument(Input(column), ": its values are in ",
                           kContentsNames[__builtin_ctz(others)], ", ",
                           InferDatatypeName(column.dtype), " is sent in ", kContentsNames[field]);
  }
  if (contents.count == count) return OkStatus();
  return InvalidArgument(Input(column), ": ", contents.count, " values were sent in ",
                         kContentsNames[field], ", shape ", ShapeName(column.dims), " has ", count,
                         " elements");
}

// Checks that values sent as 32 bits fit their narrower type.
Status CheckRange(const Column& column) {
  const ContentsField field = ContentsFieldOf(column.dtype);
  const size_t bits = 8 * ElementSize(column.dtype);
  if (bits >= 32 || (field != kInts && field != kUints)) return OkStatus();
  const int64_t least = field == kInts ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t most = least + (int64_t{1} << bits) - 1;
  Reader reader(column.values.payload);
  uint64_t varint;
  for (int64_t i = 0; !reader.done() && reader.ReadVarint(&varint); ++i) {
    const auto bits32 = static_cast<uint32_t>(varint);
    const int64_t value = field == kInts ? int64_t{static_cast<int32_t>(bits32)} : int64_t{bits32};
    if (value >= least && value <= most) continue;
    return InvalidArgument(Input(column), ": value ", i, " is ", value, ", ",
                           InferDatatypeName(column.dtype), " ranges from ", least, " to ", most);
  }
  return OkStatus();
}

// `raw` holds the elements in memory layout, each string after its four-byte length.
Status SetRawValues(const Bytes& raw, Column* column) {
  int64_t count = 0;
  if (Status status = ElementCount(*column, &count); !status.ok()) return status;
  ColumnValues& values = column->values;
  if (column->dtype == DT_STRING) {
    const size_t taken = ReadRawStrings(raw, count, [&](const Bytes&) { ++values.count; });
    values.packed = true;
    values.payload = raw;
    if (values.count == count && taken == raw.size()) return OkStatus();
    return InvalidArgument(Input(*column), ": its ", raw.size(), " bytes are not the ", count,
                           " strings of shape ", ShapeName(column->dims),
                           ", each after its length of 4 bytes");
  }
  values.tensor_content = raw;
  const size_t size = ElementSize(column->dtype);
  if (raw.size() % size == 0 && raw.size() / size == static_cast<size_t>(count)) return OkStatus();
  return InvalidArgument(Input(*column), ": ", raw.size(), " bytes were sent, but shape ",
                         ShapeName(column->dims), " of ", InferDatatypeName(column->dtype),
                         " needs ", count, " elements of ", size, " bytes");
}

// Returns INVALID_ARGUMENT for a parameter of a request, an input or an output that asks for a
// feature that the server lacks.
Status CheckParameter(std::string_view name) {
  for (const auto& [refused, feature] : {std::pair("sequence_id", "sequences"),
                                         {"shared_memory_region", "shared memory"},
                                         {"classification", "classification over this protocol"}}) {
    if (name != refused) continue;
    return InvalidArgument("parameter ", Quoted(name), ": the server has no ", feature);
  }
  return OkStatus();
}

}  // namespace

// Reading functions return false on failure, after setting error_ unless the message is malformed.
class InferRequestDecoder {
 public:
  InferRequestDecoder(DecodedRequest* request, size_t max_columns)
      : request_(request), max_columns_(max_columns) {}

  Status Decode(const Bytes& message) {
    Malformed malformed;
    if (ReadRequest(Reader(message, &malformed)) && SetRaw()) {
      request_->RememberNames(as_before_);
      return OkStatus();
    }
    return error_.ok() ? malformed.ToStatus("ModelInferRequest", message.size()) : error_;
  }

 private:
  bool ReadRequest(Reader message) {
    std::string_view name, version;
    const bool read = ReadFields(&message, [&](uint32_t tag) {
      Reader nested;
      switch (tag) {
        case MakeTag(1, kLengthType):
          return ReadText(&message, &name);
        case MakeTag(2, kLengthType):
          return ReadText(&message, &version);
        case MakeTag(3, kLengthType):
          return ReadText(&message, &request_->id);
        case MakeTag(4, kLengthType):
          return message.ReadNested(&nested) && ReadParameter(nested, /*of_request=*/true);
        case MakeTag(5, kLengthType):
          return message.ReadNested(&nested) && ReadInput(nested);
        case MakeTag(6, kLengthType):
          return message.ReadNested(&nested) && ReadOutput(nested);
        case MakeTag(7, kLengthType):
          if (raw_.empty()) raw_.reserve(request_->column_count_);
          return Limit(raw_.size() + 1, "raw_input_contents") &&
                 message.ReadBytes(&raw_.emplace_back());
        default:
          return message.SkipValue(tag);
      }
    });
    request_->model_spec.name = name;
    SetInferVersion(version, &request_->model_spec);
    return read;
  }

  bool ReadInput(Reader input) {
    std::vector<Column>& columns = request_->columns_;
    const size_t index = request_->column_count_;
    if (index == columns.size()) columns.emplace_back();
    Column& column = columns[index];
    column.Clear();
    as_before_ = as_before_ && index < request_->names_before_.size();
    const std::string_view usual_name =
        as_before_ ? std::string_view(request_->names_before_[index]) : "";
    std::string_view datatype;
    Contents contents;
    const bool read = ReadFields(&input, [&](uint32_t tag) {
      Reader nested;
      switch (tag) {
        case MakeTag(1, kLengthType):
          return ReadText(&input, &column.name, usual_name);
        case MakeTag(2, kLengthType):
          return ReadText(&input, &datatype);
        case MakeTag(3, kLengthType):
          return input.ReadNested(&nested) && ReadDims(&nested, &column);
        case MakeTag(3, kVarintType):
          return ReadDim(&input, &column);
        case MakeTag(4, kLengthType):
          return input.ReadNested(&nested) && ReadParameter(nested, /*of_request=*/false);
        case MakeTag(5, kLengthType):
          return input.ReadNested(&nested) && ReadContents(nested, &column, &contents);
        default:
          return input.SkipValue(tag);
      }
    });
    if (!read) return false;
    column.dtype = InferDataType(datatype);
    if (column.dtype == DT_INVALID) {
      return Fail(InvalidArgument(Input(column), ": datatype ", Quoted(datatype),
                                  "; expected BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32, "
                                  "FP64, BF16 or BYTES"));
    }
    as_before_ = as_before_ && column.name == usual_name;
    if (!as_before_ && request_->AllNames().FindOrAdd(column.name) != index) {
      return Fail(InvalidArgument(Input(column), " appears twice"));
    }
    if (!Limit(++request_->column_count_, "inputs")) return false;
    if (!contents.given) return true;
    if (!with_contents_) with_contents_ = index;
    return SetTypedValues(&contents, &column);
  }

  static bool ReadDim(Reader* reader, Column* column) {
    uint64_t dim;
    if (!reader->ReadVarint(&dim)) return false;
    AddDim(static_cast<int64_t>(dim), &column->dims);
    return true;
  }

  static bool ReadDims(Reader* packed, Column* column) {
    while (!packed->done()) {
      if (!ReadDim(packed, column)) return false;
    }
    return true;
  }

  // Merges an InferTensorContents.
  bool ReadContents(Reader message, Column* column, Contents* contents) {
    const Bytes bytes = message.Rest();
    bool has_strings = false;
    const bool read = ReadFields(&message, [&](uint32_t tag) {
      const auto field = static_cast<ContentsField>(FieldNumberOf(tag));
      const WireType type = UnpackedTypeOf(field);
      const bool is_packed = WireTypeOf(tag) == kLengthType && field != kBytes;
      // As in protobuf, a known field with another wire type counts as unknown.
      if (field > kBytes || (!is_packed && WireTypeOf(tag) != type)) return message.SkipValue(tag);
      Bytes body = message.Rest();
      int64_t count = 1;
      if (is_packed) {
        if (!message.ReadPacked(type, &body, &count)) return false;
      } else if (!message.SkipValue(tag)) {
        return false;
      }
      if (count == 0) return true;
      if (!is_packed) body = body.Sub(0, body.size() - message.Rest().size());
      if (field != kBytes) contents->AddNumbers(body);
      has_strings = has_strings || field == kBytes;
      contents->fields |= 1u << field;
      contents->count += count;
      return true;
    });
    contents->given = contents->given || !bytes.empty();
    if (!read || !has_strings) return read;
    column->values.messages.push_back(bytes);
    return column->values.messages.size() == 1 ||
           Limit(++merged_contents_, "contents that are merged into others");
  }

  bool SetTypedValues(Contents* contents, Column* column) {
    Status status = CheckContents(*column, *contents);
    if (!status.ok()) return Fail(std::move(status));
    ColumnValues& values = column->values;
    values.count = contents->count;
    if (column->dtype == DT_STRING) return true;
    values.packed = true;
    values.payload = contents->joined.empty() ? contents->numbers
                                              : Bytes(request_->Keep(std::move(contents->joined)));
    status = CheckRange(*column);
    return status.ok() || Fail(std::move(status));
  }

  bool ReadOutput(Reader output) {
    std::string_view name;
    const bool read = ReadFields(&output, [&](uint32_t tag) {
      Reader nested;
      switch (tag) {
        case MakeTag(1, kLengthType):
          return ReadText(&output, &name);
        case MakeTag(2, kLengthType):
          return output.ReadNested(&nested) && ReadParameter(nested, /*of_request=*/false);
        default:
          return output.SkipValue(tag);
      }
    });
    if (!read) return false;
    request_->output_filter.push_back(name);
    return Limit(request_->output_filter.size(), "outputs");
  }

  // Reads an entry of map<string, InferParameter>.
  bool ReadParameter(Reader entry, bool of_request) {
    std::string_view name, text;
    bool is_string = false;
    const bool read = ReadFields(&entry, [&](uint32_t field) {
      if (field == MakeTag(1, kLengthType)) return ReadText(&entry, &name);
      if (field != MakeTag(2, kLengthType)) return entry.SkipValue(field);
      Reader choice;
      return entry.ReadNested(&choice) && ReadFields(&choice, [&](uint32_t tag) {
               switch (tag) {
                 case MakeTag(3, kLengthType):
                   is_string = true;
                   return ReadText(&choice, &text);
                 case MakeTag(1, kVarintType):   // bool_param
                 case MakeTag(2, kVarintType):   // int64_param
                 case MakeTag(4, kFixed64Type):  // double_param
                 case MakeTag(5, kVarintType):   // uint64_param
                   is_string = false;
               }
               return choice.SkipValue(tag);
             });
    });
    if (!read) return false;
    if (of_request && name == kSignatureParameter) {
      request_->model_spec.signature_name = text;
      return is_string ||
             Fail(InvalidArgument("parameter ", Quoted(name), " is not a string_param"));
    }
    Status status = CheckParameter(name);
    return status.ok() || Fail(std::move(status));
  }

  // Reads a text, which must be valid UTF-8. Skips the check if the text equals `valid`.
  bool ReadText(Reader* reader, std::string_view* text, std::string_view valid = "") {
    Bytes bytes;
    if (!reader->ReadBytes(&bytes)) return false;
    *text = bytes.contiguous() ? bytes.view() : request_->Keep(bytes.ToString());
    return *text == valid || reader->CheckText(bytes);
  }

  // Sets inputs' values from the raw contents, or checks that inputs without contents are empty.
  bool SetRaw() {
    const size_t count = request_->column_count_;
    if (!raw_.empty() && raw_.size() != count) {
      return Fail(
          InvalidArgument(raw_.size(), " raw_input_contents were sent for ", count, " inputs"));
    }
    if (!raw_.empty() && with_contents_) {
      return Fail(InvalidArgument(Input(request_->columns_[*with_contents_]),
                                  " has contents in a request with raw_input_contents: expected "
                                  "one of them"));
    }
    for (size_t i = 0; i < count; ++i) {
      Column& column = request_->columns_[i];
      Status status = !raw_.empty()             ? SetRawValues(raw_[i], &column)
                      : column.values.count > 0 ? OkStatus()
                                                : CheckContents(column, {});
      if (!status.ok()) return Fail(std::move(status));
    }
    return true;
  }

  bool Limit(size_t count, const char* what) {
    if (count <= max_columns_) return true;
    return Fail(ResourceExhausted("the request has more than ", max_columns_, " ", what,
                                  " (--max_request_columns)"));
  }

  bool Fail(Status error) {
    error_ = std::move(error);
    return false;
  }

  DecodedRequest* const request_;
  const size_t max_columns_;
  bool as_before_ = true;  // whether the names so far equal those of the previous message
  std::vector<Bytes> raw_;
  size_t merged_contents_ = 0;
  Status error_;
  std::optional<size_t> with_contents_;  // the first input that has typed contents
};

Status DecodeInferRequest(const Bytes& message, DecodedRequest* request, size_t max_columns) {
  request->Clear();
  return InferRequestDecoder(request, max_columns).Decode(message);
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

}  // namespace colcast
