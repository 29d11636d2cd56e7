#include "server/rest/infer_reader.h"

#include <utility>

#include "server/wire/data_type.h"
#include "server/wire/infer_request.h"
#include "server/wire/infer_tensor.h"
#include "server/wire/tensor_values.h"

namespace colcast::http {
namespace {

using Kind = JsonValue::Kind;

bool IsSize(const JsonValue& value) { return value.kind == Kind::kInt64 && value.whole >= 0; }

}  // namespace

std::string TensorsReader::Here() const {
  std::string here = '"' + std::string(member_) + "\"[" + std::to_string(tensors_.size() - 1) + ']';
  if (!tensors_.back().name.empty()) here += ", " + Quoted(tensors_.back().name);
  return here;
}

// Fails with INVALID_ARGUMENT unless `is_right`, which says whether the member's value has the
// expected kind.
void TensorsReader::Want(const JsonValue& value, bool is_right, const char* expected) {
  static constexpr const char* kNames[] = {"", "name", "datatype", "shape", "parameters", "data"};
  if (is_right) return;
  FailAt(Here() + ": \"" + kNames[static_cast<int>(now_)] + "\" has ", value,
         ", expected " + std::string(expected));
}

void TensorsReader::OnValue(const JsonValue& value) {
  switch (depth()) {
    case 0:
      if (value.kind != Kind::kList) {
        FailAt('"' + std::string(member_) + "\" is ", value, ", expected a list of tensors");
      }
      return;
    case 1:
      if (tensors_.size() == max_tensors_) {
        return Fail(ResourceExhausted("the request has more than ", max_tensors_, " ", member_,
                                      " (--max_request_columns)"));
      }
      tensors_.emplace_back();
      now_ = Member::kOther;
      if (value.kind != Kind::kObject) FailAt(Here() + " is ", value, ", expected an object");
      return;
    case 2:
      return OnMember(value);
    default:
      if (now_ == Member::kShape) {
        Want(value, IsSize(value), "whole numbers");
        if (!failed()) AddDim(value.whole, &tensors_.back().shape);
      } else if (now_ == Member::kParameters && depth() == 3) {
        OnParameter(value);
      } else if (now_ == Member::kData) {
        const bool is_row = value.kind == Kind::kList || tensors_.back().shape.size() == 1;
        if (depth() == 3 && is_row) CheckRows(++rows_);
        if (!failed()) OnData(value);
      }
  }
}

// Stops if the shape, or the data so far, has too many rows.
void TensorsReader::CheckRows(int64_t rows) {
  const std::string& name = tensors_.back().name;
  if (limit_ == nullptr || name.empty() || !limit_->IsPassed(rows, name)) return;
  Stop(limit_->TooMany("input " + Quoted(name)));
}

void TensorsReader::OnMember(const JsonValue& value) {
  InferTensor& tensor = tensors_.back();
  switch (now_) {
    case Member::kName:
      Want(value, value.kind == Kind::kString, "a string");
      tensor.name = value.text;
      return;
    case Member::kDatatype:
      Want(value, value.kind == Kind::kString, "a string");
      tensor.datatype = value.text;
      return;
    case Member::kShape:
      Want(value, value.kind == Kind::kList, "a list of whole numbers");
      tensor.shape.clear();
      return;
    case Member::kParameters:
      return Want(value, value.kind == Kind::kObject || value.kind == Kind::kBase64, "an object");
    case Member::kData:
      if (request_ == nullptr) return;
      if (tensor.has_data) return Fail(InvalidArgument(Here(), ": \"data\" appears twice"));
      tensor.has_data = true;
      rows_ = 0;
      if (!tensor.shape.empty()) CheckRows(tensor.shape[0]);
      if (failed()) return;
      BeginData();
      return OnData(value);
    case Member::kOther:
      return;
  }
}

void TensorsReader::OnParameter(const JsonValue& value) {
  Status status = CheckInferParameter(parameter_);
  if (!status.ok()) return Fail(InvalidArgument(Here(), ": ", status.message));
  if (parameter_ == "binary_data_size") {
    Want(value, IsSize(value), "a whole number as \"binary_data_size\"");
    if (!failed()) tensors_.back().binary_bytes = value.whole;
  } else if (parameter_ == "binary_data") {
    Want(value, value.kind == Kind::kBool, "true or false as \"binary_data\"");
    if (!failed()) tensors_.back().binary_output = value.truth ? 1 : 0;
  }
}

void TensorsReader::OnKey(std::string_view name) {
  if (depth() == 3 && now_ == Member::kParameters) parameter_ = name;
  if (depth() != 2) return;
  now_ = name == "name"         ? Member::kName
         : name == "datatype"   ? Member::kDatatype
         : name == "shape"      ? Member::kShape
         : name == "parameters" ? Member::kParameters
         : name == "data"       ? Member::kData
                                : Member::kOther;
}

void TensorsReader::BeginData() {
  const InferTensor& now = tensors_.back();
  const size_t index = tensors_.size() - 1;
  const bool known = index < before_.size();
  column_name_ = known ? before_[index].name : now.name;
  const std::string& datatype = known ? before_[index].datatype : now.datatype;
  column_.reset();
  if (!known && (now.name.empty() || datatype.empty())) {
    again_ = true;
    return;
  }
  Column column;
  column.name = column_name_;
  if (Status status = ReadInferDatatype(datatype, &column); !status.ok()) return Fail(status);
  column_.emplace(column_name_, column.dtype, memory_);
  column_->Begin();
}

void TensorsReader::OnData(const JsonValue& value) {
  if (!column_) return;
  column_->Value(value);
  if (depth() == 2 && !value.IsContainer()) EndData();
}

void TensorsReader::OnEnd(size_t count) {
  if (depth() == 1) return EndTensor();
  if (depth() < 2 || now_ != Member::kData || !column_) return;
  column_->End(count);
  if (depth() == 2) EndData();
}

void TensorsReader::EndData() {
  if (Status status = column_->Finish(); !status.ok()) Fail(std::move(status));
}

void TensorsReader::EndTensor() {
  if (tensors_.back().name.empty()) return Fail(InvalidArgument(Here(), " has no \"name\""));
  if (request_ == nullptr || again_) return;
  if (Status status = FillColumn(); !status.ok()) Fail(std::move(status));
  column_.reset();
}

// The data must be flat or nested like the tensor's shape.
Status TensorsReader::FillColumn() {
  const InferTensor& tensor = tensors_.back();
  if (request_->Find(tensor.name) != nullptr) {
    return InvalidArgument("input ", Quoted(tensor.name), " appears twice");
  }
  Column* const column = request_->AddColumn(request_->Keep(std::string(tensor.name)));
  if (Status status = ReadInferDatatype(tensor.datatype, column); !status.ok()) return status;
  if (tensor.has_data == (tensor.binary_bytes >= 0)) {
    return InvalidArgument("input ", Quoted(tensor.name), " has ",
                           tensor.has_data ? "both" : "neither",
                           " \"data\" and \"binary_data_size\": expected one of them");
  }
  column->dims = tensor.shape;
  if (!tensor.has_data) return OkStatus();
  int64_t expected = 0, count = 0;
  if (Status status = ElementCount(*column, &expected); !status.ok()) return status;
  column->dims.clear();
  column_->MoveTo(/*rows=*/-1, &contents_->emplace_back(memory_), column);
  if (Status status = ElementCount(*column, &count); !status.ok()) return status;
  if (count != expected || (column->dims.size() > 1 && column->dims != tensor.shape)) {
    return InvalidArgument("input ", Quoted(tensor.name), ": its data has shape ",
                           ShapeName(column->dims), ", expected shape ", ShapeName(tensor.shape),
                           " or a flat list");
  }
  column->dims = tensor.shape;
  return OkStatus();
}

void ParametersReader::OnKey(std::string_view name) {
  if (depth() == 1) name_ = name;
}

void ParametersReader::OnValue(const JsonValue& value) {
  if (depth() == 0) {
    if (value.kind == Kind::kObject || value.kind == Kind::kBase64) return;
    return FailAt("\"parameters\" is ", value, ", expected an object");
  }
  if (depth() != 1) return;
  if (Status status = CheckInferParameter(name_); !status.ok()) return Fail(std::move(status));
  if (name_ == kSignatureParameter) {
    if (value.kind != Kind::kString) {
      return FailAt(Quoted(kSignatureParameter) + " is ", value, ", expected a string");
    }
    signature_name_ = value.text;
  } else if (name_ == "binary_data_output") {
    if (value.kind != Kind::kBool) {
      return FailAt("\"binary_data_output\" is ", value, ", expected true or false");
    }
    binary_outputs_ = value.truth;
  }
}

}  // namespace colcast::http
