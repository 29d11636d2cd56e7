#include "server/rest/inputs_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/wire/data_type.h"

namespace colcast::http {
namespace {

using tensorflow::TensorInfo;

const TensorInfo& RowIndexInfo() {
  static const TensorInfo* const kInfo = [] {
    auto* const info = new TensorInfo;
    info->set_dtype(tensorflow::DT_INT64);
    return info;
  }();
  return *kInfo;
}

}  // namespace

JsonColumn InputsReader::MakeColumn(std::string_view name, const TensorInfo& input) const {
  return JsonColumn(name, static_cast<DataType>(input.dtype()), memory_);
}

void InputsReader::MoveColumn(JsonColumn* column, int64_t rows, size_t index) {
  column->MoveTo(rows, &contents_->emplace_back(), request_->mutable_column(index));
}

bool InputsReader::ToColumn(const JsonValue& value, size_t column_depth) {
  column_->Value(value);
  return depth() == column_depth && !value.IsContainer();
}

bool InputsReader::EndInColumn(size_t count, size_t column_depth) {
  column_->End(count);
  return depth() == column_depth;
}

std::string InputsReader::InputNames() const {
  std::vector<std::string> names;
  for (const auto& [name, input] : signature_.inputs()) names.push_back(Quoted(name));
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

Status InputsReader::UnknownInput(const std::string& where, std::string_view name) const {
  return InvalidArgument(where, ": unknown input ", Quoted(name), "; the signature's are ",
                         InputNames());
}

void RowsReader::OnValue(const JsonValue& value) {
  if (depth() == 0) {
    if (value.kind != JsonValue::Kind::kList) {
      FailAt("\"instances\" is ", value, ", expected a list of rows");
    }
    return;
  }
  if (depth() == 1) {
    BeginRow(value);
    if (objects_ || failed()) return;
  }
  if (ToColumn(value, ColumnDepth())) EndColumn();
}

bool RowsReader::IsTooManyRows() const {
  return std::any_of(columns_.begin(), columns_.end(), [this](const Named& named) {
    return IsTooMany(rows_ + 1, named.column.name());
  });
}

void RowsReader::BeginRow(const JsonValue& row) {
  if (IsTooManyRows()) return StopAtLimit("\"instances\"");
  const bool object = row.kind == JsonValue::Kind::kObject;
  if (rows_ == 0) objects_ = object;
  position_ = 0;
  if (objects_ && !object) {
    return FailAt(Here() + " is ", row, ", expected an object, like the rows before it");
  }
  if (objects_) return;
  if (signature().inputs_size() > 1) {
    return FailAt(Here() + " is ", row,
                  ", expected an object with the signature's inputs " + InputNames());
  }
  if (rows_ == 0) {
    const auto& [name, input] = *signature().inputs().begin();
    request()->AddColumn(name);
    columns_.push_back({MakeColumn(name, input)});
  }
  BeginColumn(&columns_.front().column);
}

void RowsReader::OnKey(std::string_view name) {
  if (!objects_ || depth() != 2) return;
  size_t index = 0;
  if (Status status = FindColumn(name, position_++, &index); !status.ok()) {
    return Fail(std::move(status));
  }
  BeginColumn(&columns_[index].column);
}

void RowsReader::OnEnd(size_t count) {
  if (depth() == 0) {
    if (count == 0) Fail(InvalidArgument("\"instances\" is an empty list"));
  } else if (depth() == 1 && objects_) {
    EndRow();
  } else if (EndInColumn(count, ColumnDepth())) {
    EndColumn();
  }
}

void RowsReader::EndColumn() {
  if (Status status = FinishColumn(); !status.ok()) {
    Fail(InvalidArgument(Here(), ": ", status.message));
  } else if (!objects_) {
    ++rows_;
  }
}

void RowsReader::EndRow() {
  if (rows_ == 0) {
    if (Status status = CheckComplete(); !status.ok()) return Fail(std::move(status));
  } else if (position_ < columns_.size()) {
    return Fail(
        InvalidArgument(Here(), ": no input ", Quoted(MissingInput()), ", which instances[0] has"));
  }
  ++rows_;
}

void RowsReader::FillColumns() {
  for (size_t i = 0; i < columns_.size(); ++i) MoveColumn(&columns_[i].column, rows_, i);
}

// `position` is tried first, because rows usually list their inputs in the same order.
Status RowsReader::FindColumn(std::string_view name, size_t position, size_t* index) {
  *index = position;
  if (position >= columns_.size() || columns_[position].column.name() != name) {
    const Column* const known = request()->Find(name);
    if (known != nullptr) {
      *index = known - request()->columns().begin();
    } else if (Status status = AddColumn(name, index); !status.ok()) {
      return status;
    }
  }
  if (columns_[*index].next_row != rows_) {
    return InvalidArgument(Here(), ": input ", Quoted(name), " appears twice");
  }
  ++columns_[*index].next_row;
  return OkStatus();
}

Status RowsReader::AddColumn(std::string_view name, size_t* index) {
  const auto input = signature().inputs().find(std::string(name));
  if (input == signature().inputs().end()) return UnknownInput(Here(), name);
  if (rows_ > 0) {
    return InvalidArgument(Here(), ": input ", Quoted(name), ", which instances[0] does not have");
  }
  *index = columns_.size();
  request()->AddColumn(input->first);
  columns_.push_back({MakeColumn(input->first, input->second)});
  return OkStatus();
}

// Returns INVALID_ARGUMENT if an input without a default has no column.
Status RowsReader::CheckComplete() const {
  for (const auto& [name, input] : signature().inputs()) {
    const bool known =
        std::any_of(columns_.begin(), columns_.end(),
                    [&wanted = name](const Named& named) { return named.column.name() == wanted; });
    if (!known && signature().defaults().count(name) == 0) {
      return InvalidArgument(Here(), ": no input ", Quoted(name), "; the signature's are ",
                             InputNames());
    }
  }
  return OkStatus();
}

std::string_view RowsReader::MissingInput() const {
  const auto missing = std::find_if(columns_.begin(), columns_.end(),
                                    [this](const Named& named) { return named.next_row == rows_; });
  return missing->column.name();
}

void ColumnsReader::OnValue(const JsonValue& value) {
  if (depth() == 0) {
    object_ = value.kind == JsonValue::Kind::kObject;
    if (object_) return;
    if (signature().inputs_size() != 1) {
      return FailAt("\"inputs\" is ", value,
                    ", expected an object with the signature's inputs " + InputNames());
    }
    const auto& [name, input] = *signature().inputs().begin();
    AddColumn(name, input);
  }
  if (depth() == (object_ ? 2 : 1) && IsTooMany(++rows_, filled_->name())) {
    return StopAtLimit("input " + Quoted(filled_->name()));
  }
  if (ToColumn(value, object_ ? 1 : 0)) EndColumn();
}

void ColumnsReader::OnKey(std::string_view name) {
  if (!object_ || depth() != 1) return;
  const auto input = signature().inputs().find(std::string(name));
  if (input != signature().inputs().end()) return AddColumn(input->first, input->second);
  if (IsRowIndex(name)) {  // the engine decides whether the signature accepts it
    return AddColumn(request()->Keep(std::string(name)), RowIndexInfo());
  }
  Fail(UnknownInput("\"inputs\"", name));
}

void ColumnsReader::AddColumn(std::string_view name, const TensorInfo& input) {
  if (request()->Find(name) != nullptr) {
    return Fail(InvalidArgument("\"inputs\": input ", Quoted(name), " appears twice"));
  }
  request()->AddColumn(name);
  rows_ = 0;
  BeginColumn(&filled_.emplace(MakeColumn(name, input)));
}

void ColumnsReader::OnEnd(size_t count) {
  // Leaves missing inputs to the engine, because a request without candidates may omit their
  // inputs.
  if (depth() == 0 && object_) return;
  if (EndInColumn(count, object_ ? 1 : 0)) EndColumn();
}

void ColumnsReader::EndColumn() {
  if (Status status = FinishColumn(); !status.ok()) return Fail(std::move(status));
  MoveColumn(&*filled_, /*rows=*/-1, request()->columns().size() - 1);
}

}  // namespace colcast::http
