#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/wire/data_type.h"
#include "server/wire/infer.h"
#include "server/wire/reader.h"

namespace colcast {

// Reading functions return false on failure, after setting error_ unless the message is malformed.
class InferRequestDecoder {
 public:
  InferRequestDecoder(DecodedRequest* request, size_t max_columns)
      : request_(request), max_columns_(max_columns) {}

  Status Decode(const Bytes& message) {
    Malformed malformed;
    if (ReadRequest(Reader(message, &malformed))) return OkStatus();
    return error_.ok() ? malformed.ToStatus("ModelInferRequest", message.size()) : error_;
  }

 private:
  struct Parameter {
    std::string_view name;
    bool is_string = false;
    std::string_view text;
  };

  bool ReadRequest(Reader message);
  bool ReadInput(Reader input);
  bool ReadShape(uint32_t tag, Reader* input, Column* column);
  bool AddContents(Reader contents, std::vector<Bytes>* of_input);
  bool ReadOutput(Reader output);
  bool ReadParameter(Reader entry, Parameter* parameter);
  bool ReadRequestParameter(const Reader& entry);
  bool CheckParameter(const Reader& entry);
  // `valid` is a text known to be valid UTF-8, probably this one.
  bool ReadText(Reader* reader, std::string_view* text, std::string_view valid = "");
  bool AddColumn();
  bool Limit(size_t count, const char* what);
  bool SetValues();
  bool Fail(Status error) {
    error_ = std::move(error);
    return false;
  }

  DecodedRequest* const request_;
  const size_t max_columns_;
  bool as_before_ = true;  // whether the names so far equal those of the previous message
  std::string_view version_;
  std::vector<Bytes> raw_;
  size_t merged_contents_ = 0;
  Status error_;
};

bool InferRequestDecoder::ReadRequest(Reader message) {
  std::string_view name;
  const bool read = ReadFields(&message, [&](uint32_t tag) {
    Reader nested;
    switch (tag) {
      case MakeTag(1, kLengthType):
        return ReadText(&message, &name);
      case MakeTag(2, kLengthType):
        return ReadText(&message, &version_);
      case MakeTag(3, kLengthType):
        return ReadText(&message, &request_->id);
      case MakeTag(4, kLengthType):
        return message.ReadNested(&nested) && ReadRequestParameter(nested);
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
  if (!read) return false;
  SetInferVersion(version_, &request_->model_spec);
  return SetValues();
}

bool InferRequestDecoder::ReadInput(Reader input) {
  std::vector<Column>& columns = request_->columns_;
  if (request_->column_count_ == columns.size()) columns.emplace_back();
  Column& column = columns[request_->column_count_];
  column.Clear();
  const size_t index = request_->column_count_;
  std::string_view usual_name;
  if (as_before_ && index < request_->names_before_.size()) {
    usual_name = request_->names_before_[index];
  }
  std::string_view datatype;
  const bool read = ReadFields(&input, [&](uint32_t tag) {
    Reader nested;
    switch (tag) {
      case MakeTag(1, kLengthType):
        return ReadText(&input, &column.name, usual_name);
      case MakeTag(2, kLengthType):
        return ReadText(&input, &datatype);
      case MakeTag(3, kLengthType):
      case MakeTag(3, kVarintType):
        return ReadShape(tag, &input, &column);
      case MakeTag(4, kLengthType):
        return input.ReadNested(&nested) && CheckParameter(nested);
      case MakeTag(5, kLengthType):
        return input.ReadNested(&nested) && AddContents(nested, &column.values.messages);
      default:
        return input.SkipValue(tag);
    }
  });
  if (!read) return false;
  if (Status status = ReadInferDatatype(datatype, &column); !status.ok()) return Fail(status);
  return AddColumn();
}

bool InferRequestDecoder::ReadShape(uint32_t tag, Reader* input, Column* column) {
  uint64_t dim;
  if (WireTypeOf(tag) == kVarintType) {
    if (!input->ReadVarint(&dim)) return false;
    AddDim(static_cast<int64_t>(dim), &column->dims);
    return true;
  }
  Reader dims;
  if (!input->ReadNested(&dims)) return false;
  while (!dims.done()) {
    if (!dims.ReadVarint(&dim)) return false;
    AddDim(static_cast<int64_t>(dim), &column->dims);
  }
  return true;
}

bool InferRequestDecoder::AddColumn() {
  const size_t index = request_->column_count_;
  const std::string_view name = request_->columns_[index].name;
  const std::vector<std::string>& before = request_->names_before_;
  as_before_ = as_before_ && index < before.size() && name == before[index];
  if (!as_before_ && request_->AllNames().FindOrAdd(name) != index) {
    return Fail(InvalidArgument("input ", Quoted(name), " appears twice"));
  }
  return Limit(++request_->column_count_, "inputs");
}

// Only checks the values, because datatype and shape may follow.
bool InferRequestDecoder::AddContents(Reader contents, std::vector<Bytes>* of_input) {
  const Bytes message = contents.Rest();
  const bool read = ReadFields(&contents, [&](uint32_t tag) {
    constexpr uint32_t kMostOfNumbers = 7;
    Bytes ignored_body;
    int64_t ignored_count;
    const uint32_t field = FieldNumberOf(tag);
    const bool packed = WireTypeOf(tag) == kLengthType && field <= kMostOfNumbers;
    return packed
               ? contents.ReadPacked(UnpackedTypeOfContents(field), &ignored_body, &ignored_count)
               : contents.SkipValue(tag);
  });
  if (!read || message.empty()) return read;
  if (!of_input->empty() && !Limit(++merged_contents_, "contents that are merged into others")) {
    return false;
  }
  of_input->push_back(message);
  return true;
}

bool InferRequestDecoder::Limit(size_t count, const char* what) {
  if (count <= max_columns_) return true;
  return Fail(ResourceExhausted("the request has more than ", max_columns_, " ", what,
                                " (--max_request_columns)"));
}

bool InferRequestDecoder::ReadOutput(Reader output) {
  std::string_view name;
  const bool read = ReadFields(&output, [&](uint32_t tag) {
    Reader nested;
    switch (tag) {
      case MakeTag(1, kLengthType):
        return ReadText(&output, &name);
      case MakeTag(2, kLengthType):
        return output.ReadNested(&nested) && CheckParameter(nested);
      default:
        return output.SkipValue(tag);
    }
  });
  if (!read) return false;
  request_->output_filter.push_back(name);
  return Limit(request_->output_filter.size(), "outputs");
}

// Reads an entry of map<string, InferParameter>.
bool InferRequestDecoder::ReadParameter(Reader entry, Parameter* parameter) {
  return ReadFields(&entry, [&](uint32_t field) {
    if (field == MakeTag(1, kLengthType)) return ReadText(&entry, &parameter->name);
    if (field != MakeTag(2, kLengthType)) return entry.SkipValue(field);
    Reader choice;
    return entry.ReadNested(&choice) && ReadFields(&choice, [&](uint32_t tag) {
             switch (tag) {
               case MakeTag(3, kLengthType):
                 parameter->is_string = true;
                 return ReadText(&choice, &parameter->text);
               case MakeTag(1, kVarintType):   // bool_param
               case MakeTag(2, kVarintType):   // int64_param
               case MakeTag(4, kFixed64Type):  // double_param
               case MakeTag(5, kVarintType):   // uint64_param
                 parameter->is_string = false;
             }
             return choice.SkipValue(tag);
           });
  });
}

bool InferRequestDecoder::ReadRequestParameter(const Reader& entry) {
  Parameter parameter;
  if (!ReadParameter(entry, &parameter)) return false;
  if (parameter.name == kSignatureParameter) {
    if (!parameter.is_string) {
      return Fail(InvalidArgument("parameter ", Quoted(parameter.name), " is not a string_param"));
    }
    request_->model_spec.signature_name = parameter.text;
  }
  Status status = CheckInferParameter(parameter.name);
  return status.ok() || Fail(std::move(status));
}

bool InferRequestDecoder::CheckParameter(const Reader& entry) {
  Parameter parameter;
  if (!ReadParameter(entry, &parameter)) return false;
  Status status = CheckInferParameter(parameter.name);
  return status.ok() || Fail(std::move(status));
}

bool InferRequestDecoder::ReadText(Reader* reader, std::string_view* text, std::string_view valid) {
  Bytes bytes;
  if (!reader->ReadBytes(&bytes)) return false;
  *text = bytes.contiguous() ? bytes.view() : request_->Keep(bytes.ToString());
  return *text == valid || reader->CheckText(bytes);
}

bool InferRequestDecoder::SetValues() {
  const size_t count = request_->column_count_;
  if (!raw_.empty() && raw_.size() != count) {
    return Fail(
        InvalidArgument(raw_.size(), " raw_input_contents were sent for ", count, " inputs"));
  }
  for (size_t i = 0; i < count; ++i) {
    Column& column = request_->columns_[i];
    if (!raw_.empty() && !column.values.messages.empty()) {
      return Fail(InvalidArgument("input ", Quoted(column.name),
                                  " has contents in a request with raw_input_contents: expected "
                                  "one of them"));
    }
    Status status =
        raw_.empty() ? SetTypedValues(request_, &column) : SetRawValues(raw_[i], &column);
    if (!status.ok()) return Fail(std::move(status));
  }
  request_->RememberNames(as_before_);
  return true;
}

Status DecodeInferRequest(const Bytes& message, DecodedRequest* request, size_t max_columns) {
  request->Clear();
  return InferRequestDecoder(request, max_columns).Decode(message);
}

}  // namespace colcast
