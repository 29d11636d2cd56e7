#include "server/rest/predict_json.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "server/rest/json_column.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_response.h"
#include "server/wire/data_type.h"

namespace colcast::http {

namespace {

using tensorflow::SignatureDef;

// Where readers store a signature's inputs.
struct Target {
  JsonColumn MakeColumn(std::string_view name, tensorflow::DataType dtype) const {
    return JsonColumn(name, static_cast<DataType>(dtype), memory);
  }
  void MoveColumn(JsonColumn* column, int64_t rows, size_t index) const {
    column->MoveTo(rows, &contents->emplace_back(), request->mutable_column(index));
  }

  RequestMemory* memory;
  DecodedRequest* request;
  std::deque<CountedBytes>* contents;  // the values of the request's columns
};

std::string InputNames(const SignatureDef& signature) {
  std::vector<std::string> names;
  for (const auto& [name, input] : signature.inputs()) names.push_back(Quoted(name));
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

Status UnknownInput(const std::string& where, std::string_view name,
                    const SignatureDef& signature) {
  return InvalidArgument(where, ": unknown input ", Quoted(name), "; the signature's are ",
                         InputNames(signature));
}

// Reads "instances": for each row, an object (all with the same inputs) or the only input's value.
class RowsReader final : public ValueReader {
 public:
  // The arguments must outlive this object.
  RowsReader(const SignatureDef& signature, int64_t max_rows, const Target& target)
      : signature_(signature), max_rows_(max_rows), target_(target) {}

  // Call after reading, if there was no error.
  void FillColumns() {
    for (size_t i = 0; i < columns_.size(); ++i) target_.MoveColumn(&columns_[i].column, rows_, i);
  }

 private:
  struct Named {
    JsonColumn column;
    int64_t next_row = 0;
  };

  void OnValue(const JsonValue& value) override {
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
    column_->Value(value);
    if (column_->done()) EndColumn();
  }

  void OnKey(std::string_view name) override {
    if (!objects_ || depth() != 2) return;
    size_t index = 0;
    Status status = FindColumn(name, position_++, &index);
    if (!status.ok()) return Fail(std::move(status));
    column_ = &columns_[index].column;
  }

  void OnEnd(size_t count) override {
    if (depth() == 0) {
      if (count == 0) Fail(InvalidArgument("\"instances\" is an empty list"));
    } else if (depth() == 1 && objects_) {
      EndRow();
    } else {
      column_->End(count);
      if (column_->done()) EndColumn();
    }
  }

  std::string Here() const { return "instances[" + std::to_string(rows_) + "]"; }

  void BeginRow(const JsonValue& row) {
    if (rows_ == max_rows_) return Stop(TooManyRows("\"instances\"", max_rows_));
    const bool object = row.kind == JsonValue::Kind::kObject;
    if (rows_ == 0) objects_ = object;
    position_ = 0;
    if (objects_ && !object) {
      return FailAt(Here() + " is ", row, ", expected an object, like the rows before it");
    }
    if (objects_) return;
    if (signature_.inputs_size() > 1) {
      return FailAt(Here() + " is ", row,
                    ", expected an object with the signature's inputs " + InputNames(signature_));
    }
    const auto& [name, input] = *signature_.inputs().begin();
    if (rows_ == 0) AddColumn(name, input.dtype());
    column_ = &columns_.front().column;
  }

  void EndColumn() {
    if (!column_->status().ok()) {
      Fail(InvalidArgument(Here(), ": ", column_->status().message));
    } else if (!objects_) {
      ++rows_;
    }
  }

  void EndRow() {
    if (rows_ == 0) {
      if (Status status = CheckComplete(); !status.ok()) return Fail(std::move(status));
    } else if (position_ < columns_.size()) {
      return Fail(InvalidArgument(Here(), ": no input ", Quoted(MissingInput()),
                                  ", which instances[0] has"));
    }
    ++rows_;
  }

  // `position` is tried first, because rows usually list their inputs in the same order.
  Status FindColumn(std::string_view name, size_t position, size_t* index) {
    *index = position;
    if (position >= columns_.size() || columns_[position].column.name() != name) {
      const Column* const known = target_.request->Find(name);
      *index = known == nullptr ? columns_.size() : known - target_.request->columns().begin();
      Status status = known == nullptr ? AddNewColumn(name) : OkStatus();
      if (!status.ok()) return status;
    }
    if (columns_[*index].next_row != rows_) {
      return InvalidArgument(Here(), ": input ", Quoted(name), " appears twice");
    }
    ++columns_[*index].next_row;
    return OkStatus();
  }

  Status AddNewColumn(std::string_view name) {
    const auto input = signature_.inputs().find(std::string(name));
    if (input == signature_.inputs().end()) return UnknownInput(Here(), name, signature_);
    if (rows_ > 0) {
      return InvalidArgument(Here(), ": input ", Quoted(name),
                             ", which instances[0] does not have");
    }
    AddColumn(input->first, input->second.dtype());
    return OkStatus();
  }

  void AddColumn(std::string_view name, tensorflow::DataType dtype) {
    target_.request->AddColumn(name);
    columns_.push_back({target_.MakeColumn(name, dtype)});
  }

  // Returns INVALID_ARGUMENT if an input without a default has no column.
  Status CheckComplete() const {
    for (const auto& [name, input] : signature_.inputs()) {
      if (target_.request->Find(name) != nullptr || signature_.defaults().contains(name)) continue;
      return InvalidArgument(Here(), ": no input ", Quoted(name), "; the signature's are ",
                             InputNames(signature_));
    }
    return OkStatus();
  }

  std::string_view MissingInput() const {
    return std::find_if(columns_.begin(), columns_.end(),
                        [this](const Named& named) { return named.next_row == rows_; })
        ->column.name();
  }

  const SignatureDef& signature_;
  const int64_t max_rows_;
  const Target& target_;
  bool objects_ = false;
  std::deque<Named> columns_;  // in the order of the request's columns
  JsonColumn* column_ = nullptr;
  size_t position_ = 0;  // position of the next input within its row
  int64_t rows_ = 0;     // number of complete rows
};

// Reads "inputs": an object of columns, or the only input's value.
class ColumnsReader final : public ValueReader {
 public:
  // The arguments must outlive this object.
  ColumnsReader(const SignatureDef& signature, const Target& target)
      : signature_(signature), target_(target) {}

 private:
  void OnValue(const JsonValue& value) override {
    if (depth() == 0) {
      object_ = value.kind == JsonValue::Kind::kObject;
      if (object_) return;
      if (signature_.inputs_size() != 1) {
        return FailAt("\"inputs\" is ", value,
                      ", expected an object with the signature's inputs " + InputNames(signature_));
      }
      const auto& [name, input] = *signature_.inputs().begin();
      AddColumn(name, input.dtype());
    }
    column_->Value(value);
    if (column_->done()) EndColumn();
  }

  void OnKey(std::string_view name) override {
    if (!object_ || depth() != 1) return;
    const auto input = signature_.inputs().find(std::string(name));
    if (input != signature_.inputs().end()) return AddColumn(input->first, input->second.dtype());
    // The engine decides whether the signature accepts an index.
    if (!IsRowIndex(name)) return Fail(UnknownInput("\"inputs\"", name, signature_));
    AddColumn(target_.request->Keep(std::string(name)), tensorflow::DT_INT64);
  }

  void OnEnd(size_t count) override {
    // Leaves missing inputs to the engine, because a request without candidates may omit their
    // inputs.
    if (depth() == 0 && object_) return;
    column_->End(count);
    if (column_->done()) EndColumn();
  }

  void AddColumn(std::string_view name, tensorflow::DataType dtype) {
    if (target_.request->Find(name) != nullptr) {
      return Fail(InvalidArgument("\"inputs\": input ", Quoted(name), " appears twice"));
    }
    target_.request->AddColumn(name);
    column_.emplace(target_.MakeColumn(name, dtype));
  }

  void EndColumn() {
    if (!column_->status().ok()) return Fail(column_->status());
    target_.MoveColumn(&*column_, /*rows=*/-1, target_.request->columns().size() - 1);
  }

  const SignatureDef& signature_;
  const Target& target_;
  bool object_ = false;
  std::optional<JsonColumn> column_;
};

// Reads the members of the body. If a member is repeated, the first one counts.
class PredictReader final : public MembersReader {
 public:
  // `signature_name` is assumed if the inputs precede the name in the body.
  PredictReader(std::string signature_name, int64_t max_rows,
                const PredictJson::FindSignature& find, const Target& target)
      : name_(std::move(signature_name)), max_rows_(max_rows), find_(find), target_(target) {}

  // The name in the body, once read.
  const StringReader& signature_name() const { return signature_name_; }
  // Whether inputs, if any, were read with the right signature.
  bool name_was_right() const { return !found_ || name_ == signature_name_.text(); }

  JsonFormat format() const { return rows_given_ ? JsonFormat::kRows : JsonFormat::kColumns; }

  // Fills the columns, or returns an error in the inputs.
  Status Finish() {
    if (!found_) {
      name_ = signature_name_.text();
      Find();
    }
    if (!found_status_.ok()) return found_status_;
    if (signature_->inputs().empty() && rows_given_) {
      return InvalidArgument("the signature has no inputs: send \"inputs\": {}, not \"instances\"");
    }
    if (rows_given_ && columns_given_) {
      return InvalidArgument("both \"instances\" and \"inputs\": expected one of them");
    }
    if (!rows_given_ && !columns_given_ && !signature_->inputs().empty()) {
      return InvalidArgument("Missing 'inputs' or 'instances' key");
    }
    if (columns_given_) return columns_->status();
    if (!rows_given_) return OkStatus();
    if (rows_->status().ok()) rows_->FillColumns();
    return rows_->status();
  }

 private:
  ValueReader* ReaderOf(std::string_view name) override {
    if (name == "signature_name") return First(&name_given_, &signature_name_);
    const bool rows = name == "instances";
    bool& given = rows ? rows_given_ : columns_given_;
    if ((!rows && name != "inputs") || given) return nullptr;
    given = true;
    // A request with both members is refused, so the second one need not be read.
    if (rows_given_ && columns_given_) return nullptr;
    if (name_given_) name_ = signature_name_.text();
    Find();
    if (!found_status_.ok() || (rows && signature_->inputs().empty())) return nullptr;
    if (rows) return &rows_.emplace(*signature_, max_rows_, target_);
    return &columns_.emplace(*signature_, target_);
  }

  void Find() {
    found_ = true;
    found_status_ = find_(name_, &signature_);
  }

  std::string name_;
  const int64_t max_rows_;
  const PredictJson::FindSignature& find_;
  const Target& target_;
  StringReader signature_name_{"signature_name"};
  bool name_given_ = false;
  bool found_ = false;
  Status found_status_;
  const SignatureDef* signature_ = nullptr;
  bool rows_given_ = false;
  bool columns_given_ = false;
  std::optional<RowsReader> rows_;
  std::optional<ColumnsReader> columns_;
};

}  // namespace

Status PredictJson::Read(std::string_view text, int64_t max_rows, const FindSignature& find) {
  const Target target = {memory_, &request_, &contents_};
  std::string assumed;  // until the text names another signature after the inputs
  while (true) {
    request_.Clear();
    contents_.clear();
    PredictReader reader(assumed, max_rows, find, target);
    if (Status status = ReadJson(text, memory_, &reader); !status.ok()) return status;
    if (!reader.status().ok()) return reader.status();
    if (!reader.signature_name().status().ok()) return reader.signature_name().status();
    signature_name_ = reader.signature_name().text();
    format_ = reader.format();
    if (reader.name_was_right()) return reader.Finish();
    assumed = signature_name_;
  }
}

Status PredictJson::Write(const PredictResponse& outputs, Response* response) const {
  return WriteOutputs({outputs.outputs.begin(), outputs.outputs.end()}, format_, &response->body);
}

}  // namespace colcast::http
