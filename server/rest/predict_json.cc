#include "server/rest/predict_json.h"

#include <optional>
#include <utility>

#include "server/rest/inputs_reader.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_response.h"

namespace colcast::http {

namespace {

// Reads the members of the body. If a member is repeated, the first one counts.
class PredictReader final : public MembersReader {
 public:
  // `signature_name` is assumed if the inputs precede the name in the body.
  PredictReader(std::string signature_name, const PredictJson::FindSignature& find,
                const RowLimit* limit, RequestMemory* memory, DecodedRequest* request,
                std::deque<CountedBytes>* contents)
      : name_(std::move(signature_name)),
        find_(find),
        limit_(limit),
        memory_(memory),
        request_(request),
        contents_(contents) {}

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
    // A request with both is refused, so the second one need not be read.
    if (rows_given_ && columns_given_) return nullptr;
    if (name_given_) name_ = signature_name_.text();
    Find();
    if (!found_status_.ok() || (rows && signature_->inputs().empty())) return nullptr;
    if (rows) return &rows_.emplace(*signature_, limit_, memory_, request_, contents_);
    return &columns_.emplace(*signature_, limit_, memory_, request_, contents_);
  }

  void Find() {
    found_ = true;
    found_status_ = find_(name_, &signature_);
  }

  std::string name_;
  const PredictJson::FindSignature& find_;
  const RowLimit* const limit_;
  RequestMemory* const memory_;
  DecodedRequest* const request_;
  std::deque<CountedBytes>* const contents_;
  StringReader signature_name_{"signature_name"};
  bool name_given_ = false;
  bool found_ = false;
  Status found_status_;
  const tensorflow::SignatureDef* signature_ = nullptr;
  bool rows_given_ = false;
  bool columns_given_ = false;
  std::optional<RowsReader> rows_;
  std::optional<ColumnsReader> columns_;
};

}  // namespace

Status PredictJson::Read(std::string_view text, const RowLimit* rows, const FindSignature& find) {
  std::string assumed;  // until the text names another signature after the inputs
  while (true) {
    request_.Clear();
    contents_.clear();
    PredictReader reader(assumed, find, rows, memory_, &request_, &contents_);
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
