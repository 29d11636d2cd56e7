#include "server/http/predict_json.h"

#include <algorithm>
#include <vector>

#include "server/http/json_column.h"
#include "server/wire/describe.h"

namespace colcast::http {
namespace {

using tensorflow::SignatureDef;

DataType DtypeOf(const tensorflow::TensorInfo& input) {
  return static_cast<DataType>(input.dtype());
}

std::string InputNames(const SignatureDef& signature) {
  std::vector<std::string> names;
  for (const auto& [name, input] : signature.inputs()) names.push_back(Quoted(name));
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Status UnknownInput(const std::string& where, std::string_view name,
                    const SignatureDef& signature) {
  return InvalidArgument(where, ": unknown input ", Quoted(name), "; the signature's are ",
                         InputNames(signature));
}

// INVALID_ARGUMENT if an input that has no default has no column.
Status CheckComplete(const std::string& where, const SignatureDef& signature,
                     const DecodedRequest& request) {
  for (const auto& [name, input] : signature.inputs()) {
    if (request.Find(name) == nullptr && signature.defaults().count(name) == 0) {
      return InvalidArgument(where, ": no input ", Quoted(name), "; the signature's are ",
                             InputNames(signature));
    }
  }
  return OkStatus();
}

// "instances": one object per row, with the same inputs in each.
class RowReader {
 public:
  RowReader(const SignatureDef& signature, DecodedRequest* request)
      : signature_(signature), request_(request) {}

  Status ReadRow(const rapidjson::Value& row) {
    if (!row.IsObject() || IsBase64(row)) {
      return InvalidArgument(Here(), " is ", Describe(row), ", expected an object, as the rows ",
                             "before it are");
    }
    size_t position = 0;
    for (const auto& member : row.GetObject()) {
      size_t index = 0;
      if (Status status = FindColumn(Text(member.name), position++, &index); !status.ok()) {
        return status;
      }
      if (Status status = columns_[index].column.Append(member.value); !status.ok()) {
        return InvalidArgument(Here(), ": ", status.message);
      }
    }
    if (rows_ == 0) {
      if (Status status = CheckComplete(Here(), signature_, *request_); !status.ok()) return status;
    } else if (position < columns_.size()) {
      return InvalidArgument(Here(), ": no input ", Quoted(MissingInput()),
                             ", which instances[0] has");
    }
    ++rows_;
    return OkStatus();
  }

  void FillColumns() {
    for (size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].column.MoveTo(rows_, request_->mutable_column(i));
    }
  }

 private:
  struct Named {
    JsonColumn column;
    int64_t next_row = 0;
  };

  std::string Here() const { return "instances[" + std::to_string(rows_) + "]"; }

  // Rows mostly list their inputs in one order: `position` is where to look first.
  Status FindColumn(std::string_view name, size_t position, size_t* index) {
    *index = position;
    if (position >= columns_.size() || columns_[position].column.name() != name) {
      const Column* const known = request_->Find(name);
      if (known != nullptr) {
        *index = known - request_->begin();
      } else if (Status status = AddColumn(name, index); !status.ok()) {
        return status;
      }
    }
    if (columns_[*index].next_row != rows_) {
      return InvalidArgument(Here(), ": input ", Quoted(name), " comes twice");
    }
    ++columns_[*index].next_row;
    return OkStatus();
  }

  Status AddColumn(std::string_view name, size_t* index) {
    const auto input = signature_.inputs().find(std::string(name));
    if (input == signature_.inputs().end()) return UnknownInput(Here(), name, signature_);
    if (rows_ > 0) {
      return InvalidArgument(Here(), ": input ", Quoted(name), ", which instances[0] does not ",
                             "have");
    }
    *index = columns_.size();
    request_->AddColumn(input->first);
    columns_.push_back({JsonColumn(input->first, DtypeOf(input->second), request_)});
    return OkStatus();
  }

  std::string_view MissingInput() const {
    const auto missing = std::find_if(columns_.begin(), columns_.end(), [this](const Named& named) {
      return named.next_row == rows_;
    });
    return missing->column.name();
  }

  const SignatureDef& signature_;
  DecodedRequest* const request_;
  std::vector<Named> columns_;  // in the order of the request's
  int64_t rows_ = 0;
};

Status ReadObjects(const rapidjson::Value& instances, const SignatureDef& signature,
                   DecodedRequest* request) {
  RowReader reader(signature, request);
  for (const rapidjson::Value& row : instances.GetArray()) {
    if (Status status = reader.ReadRow(row); !status.ok()) return status;
  }
  reader.FillColumns();
  return OkStatus();
}

// "instances" that leave out the name of the signature's one input.
Status ReadValues(const rapidjson::Value& instances, const SignatureDef& signature,
                  DecodedRequest* request) {
  if (signature.inputs_size() > 1) {
    return InvalidArgument("instances[0] is ", Describe(instances[0]),
                           ", expected an object with the signature's inputs ",
                           InputNames(signature));
  }
  const auto& [name, input] = *signature.inputs().begin();
  JsonColumn column(name, DtypeOf(input), request);
  for (rapidjson::SizeType i = 0; i < instances.Size(); ++i) {
    if (Status status = column.Append(instances[i]); !status.ok()) {
      return InvalidArgument("instances[", i, "]: ", status.message);
    }
  }
  column.MoveTo(instances.Size(), request->AddColumn(name));
  return OkStatus();
}

Status ReadRows(const rapidjson::Value& instances, const SignatureDef& signature,
                DecodedRequest* request) {
  if (!instances.IsArray()) {
    return InvalidArgument("\"instances\" is ", Describe(instances), ", expected a list of rows");
  }
  if (instances.Empty()) return InvalidArgument("\"instances\" is an empty list");
  const bool objects = instances[0].IsObject() && !IsBase64(instances[0]);
  return objects ? ReadObjects(instances, signature, request)
                 : ReadValues(instances, signature, request);
}

Status ReadColumn(std::string_view name, const tensorflow::TensorInfo& input,
                  const rapidjson::Value& value, DecodedRequest* request) {
  Column* const filled = request->AddColumn(name);
  if (filled == nullptr) {
    return InvalidArgument("\"inputs\": input ", Quoted(name), " comes twice");
  }
  JsonColumn column(name, DtypeOf(input), request);
  if (Status status = column.Append(value); !status.ok()) return status;
  column.MoveTo(/*rows=*/-1, filled);
  return OkStatus();
}

// The extra input of requests with several users. Whether the signature takes it is the engine's to
// say.
constexpr std::string_view kRowToUser = "row_to_user";

const tensorflow::TensorInfo& RowToUserInfo() {
  static const tensorflow::TensorInfo* const kInfo = [] {
    auto* const info = new tensorflow::TensorInfo;
    info->set_dtype(tensorflow::DT_INT64);
    return info;
  }();
  return *kInfo;
}

Status ReadColumns(const rapidjson::Value& inputs, const SignatureDef& signature,
                   DecodedRequest* request) {
  if (!inputs.IsObject() || IsBase64(inputs)) {
    if (signature.inputs_size() > 1) {
      return InvalidArgument("\"inputs\" is ", Describe(inputs),
                             ", expected an object with the signature's inputs ",
                             InputNames(signature));
    }
    const auto& [name, input] = *signature.inputs().begin();
    return ReadColumn(name, input, inputs, request);
  }
  for (const auto& member : inputs.GetObject()) {
    const std::string name(Text(member.name));
    const auto input = signature.inputs().find(name);
    const bool is_known = input != signature.inputs().end();
    if (!is_known && name != kRowToUser) return UnknownInput("\"inputs\"", name, signature);
    Status status = is_known ? ReadColumn(input->first, input->second, member.value, request)
                             : ReadColumn(kRowToUser, RowToUserInfo(), member.value, request);
    if (!status.ok()) return status;
  }
  // What is missing the engine tells: a request without candidates lacks all of theirs.
  return OkStatus();
}

}  // namespace

Status ReadSignatureName(const rapidjson::Value& body, std::string* name) {
  const rapidjson::Value* found = FindMember(body, "signature_name");
  if (found == nullptr) return OkStatus();
  if (!found->IsString()) {
    return InvalidArgument("\"signature_name\" is ", Describe(*found), ", expected a string");
  }
  *name = Text(*found);
  return OkStatus();
}

Status ReadInputs(const rapidjson::Value& body, const SignatureDef& signature, JsonFormat* format,
                  DecodedRequest* request) {
  const rapidjson::Value* instances = FindMember(body, "instances");
  const rapidjson::Value* inputs = FindMember(body, "inputs");
  if (signature.inputs().empty()) return InvalidArgument("the signature has no inputs");
  if (instances != nullptr && inputs != nullptr) {
    return InvalidArgument("both \"instances\" and \"inputs\": expected one of them");
  }
  if (instances == nullptr && inputs == nullptr) {
    return InvalidArgument("Missing 'inputs' or 'instances' key");
  }
  *format = instances != nullptr ? JsonFormat::kRows : JsonFormat::kColumns;
  return instances != nullptr ? ReadRows(*instances, signature, request)
                              : ReadColumns(*inputs, signature, request);
}

}  // namespace colcast::http
