#include "server/rest/infer_json.h"

#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "server/base/text.h"
#include "server/rest/infer_reader.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_response.h"
#include "server/wire/data_type.h"
#include "server/wire/infer_response.h"
#include "server/wire/infer_tensor.h"

namespace colcast::http {
namespace {

// Reads the members of the body. If a member is repeated, the first one counts.
class InferReader final : public MembersReader {
 public:
  InferReader(const RowLimit* limit, RequestMemory* memory, const std::vector<InferTensor>& before,
              size_t max_inputs, DecodedRequest* request, std::deque<SliceBuffer>* contents)
      : inputs_("inputs", limit, memory, before, max_inputs, request, contents),
        outputs_("outputs", nullptr, memory, before, max_inputs, nullptr, nullptr) {}

  // Returns the first error, apart from syntax errors.
  Status Finish() {
    const std::initializer_list<const ValueReader*> parts = {this, &id_, &parameters_, &inputs_,
                                                             &outputs_};
    for (const ValueReader* const part : parts) {
      if (!part->status().ok()) return part->status();
    }
    return has_inputs_ ? OkStatus() : InvalidArgument("Missing \"inputs\"");
  }

  const std::string& id() const { return id_.text(); }
  const ParametersReader& parameters() const { return parameters_; }
  TensorsReader& inputs() { return inputs_; }
  TensorsReader& outputs() { return outputs_; }

 private:
  ValueReader* ReaderOf(std::string_view name) override {
    if (name == "id") return First(&has_id_, &id_);
    if (name == "parameters") return First(&has_parameters_, &parameters_);
    if (name == "inputs") return First(&has_inputs_, &inputs_);
    if (name == "outputs") return First(&has_outputs_, &outputs_);
    return nullptr;
  }

  StringReader id_{"id"};
  ParametersReader parameters_;
  TensorsReader inputs_, outputs_;
  bool has_id_ = false, has_parameters_ = false, has_inputs_ = false, has_outputs_ = false;
};

std::vector<Slice> SlicesOf(const Bytes& bytes) {
  std::vector<Slice> slices;
  bytes.ForEachPiece([&](const uint8_t* data, size_t size) { slices.push_back({data, size}); });
  return slices;
}

Status Inflate(const BodyBytes& body, SliceBuffer* inflated) {
  constexpr size_t kPieceBytes = 64 << 10;
  const auto piece = std::make_unique<char[]>(kPieceBytes);
  Inflater inflater(body.slices, Inflater::Format::kGzipBody, body.max_bytes);
  for (size_t size = kPieceBytes; size > 0; inflated->Append(piece.get(), size)) {
    size = kPieceBytes;
    if (Status status = ReadInflated(body, &inflater, piece.get(), &size); !status.ok())
      return status;
  }
  return OkStatus();
}

void AppendShape(const OutputColumn& output, std::string* json) {
  json->append(",\"shape\":[");
  for (size_t i = 0; i < output.dims.size(); ++i) {
    json->append(i == 0 ? "" : ",").append(std::to_string(output.dims[i]));
  }
  json->push_back(']');
}

Status AppendData(const OutputColumn& output, std::string* json) {
  const int64_t count = output.ElementCount();
  json->append(",\"data\":[");
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) json->push_back(',');
    const bool is_text = output.dtype != DT_STRING || IsValidUtf8(output.string_at(output.data, i));
    if (!is_text || !AppendJsonElement(output, i, json)) {
      return InvalidArgument("output ", Quoted(output.name), ": ", InferDatatypeName(output.dtype),
                             is_text ? "" : " that are not UTF-8",
                             " cannot be sent as JSON; ask for them with \"binary_data\": true");
    }
  }
  json->push_back(']');
  return OkStatus();
}

void AppendBinary(const std::vector<const OutputColumn*>& outputs, Response* response) {
  std::string& body = response->body;
  response->content_type = "application/octet-stream";
  response->headers.emplace_back(kInferHeaderLength, std::to_string(body.size()));
  for (const OutputColumn* const output : outputs) {
    const size_t at = body.size();
    body.resize(at + RawSize(*output));
    WriteRaw(*output, reinterpret_cast<uint8_t*>(body.data() + at));
  }
}

}  // namespace

Status InferJson::Read(const BodyBytes& body, const FindSignature& /*find*/) {
  inflated_.Clear();
  if (header_length_.empty()) {
    Status status = ReadJsonPart(body);
    return status.ok() ? ReadBinaryPart(Bytes()) : status;
  }
  Bytes all(body.slices.data(), body.slices.size());
  if (body.gzip) {
    if (Status status = Inflate(body, &inflated_); !status.ok()) return status;
    all = inflated_.bytes();
  }
  size_t length = 0;
  const char* const end = header_length_.data() + header_length_.size();
  const auto read = std::from_chars(header_length_.data(), end, length);
  if (read.ec != std::errc() || read.ptr != end || length > all.size()) {
    return InvalidArgument(kInferHeaderLength, " is ", Quoted(header_length_),
                           ", expected at most the body's ", all.size(), " bytes");
  }
  const std::vector<Slice> json = SlicesOf(all.Sub(0, length));
  if (Status status = ReadJsonPart({json, false, body.max_bytes, body.rows}); !status.ok())
    return status;
  return ReadBinaryPart(all.Sub(length, all.size() - length));
}

Status InferJson::ReadJsonPart(const BodyBytes& json) {
  inputs_.clear();
  for (bool again = true; again;) {
    request_.Clear();
    contents_.clear();
    InferReader reader(json.rows, memory_, inputs_, max_inputs_, &request_, &contents_);
    if (Status status = ReadJson(json, memory_, &reader); !status.ok()) return status;
    if (Status status = reader.Finish(); !status.ok()) return status;
    again = reader.inputs().again();
    inputs_ = std::move(reader.inputs().tensors());
    outputs_ = std::move(reader.outputs().tensors());
    id_ = reader.id();
    signature_name_ = reader.parameters().signature_name();
    binary_outputs_ = reader.parameters().binary_outputs();
  }
  for (const InferTensor& output : outputs_) {
    request_.output_filter.push_back(output.name);
  }
  return OkStatus();
}

Status InferJson::ReadBinaryPart(const Bytes& binary) {
  size_t at = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].binary_bytes < 0) continue;
    const auto size = static_cast<size_t>(inputs_[i].binary_bytes);
    if (size > binary.size() - at) {
      return InvalidArgument("input ", Quoted(inputs_[i].name), ": \"binary_data_size\" is ", size,
                             ", and ", binary.size() - at, " bytes are left of the body");
    }
    if (Status status = SetRawValues(binary.Sub(at, size), request_.mutable_column(i));
        !status.ok()) {
      return status;
    }
    at += size;
  }
  if (at == binary.size()) return OkStatus();
  return InvalidArgument("the body has ", binary.size(),
                         " bytes after its JSON, but its inputs claim ", at,
                         " as \"binary_data_size\"");
}

bool InferJson::IsBinary(std::string_view output) const {
  for (const InferTensor& wanted : outputs_) {
    if (wanted.name == output && wanted.binary_output >= 0) return wanted.binary_output != 0;
  }
  return binary_outputs_;
}

Status InferJson::Write(const PredictResponse& outputs, Response* response) const {
  if (Status status = CheckInferResponse(outputs); !status.ok()) return status;
  std::string& body = response->body;
  body = "{\"model_name\":";
  AppendJsonString(outputs.model_name, &body);
  body.append(",\"model_version\":\"").append(std::to_string(outputs.version)).append("\"");
  if (!id_.empty()) {
    body.append(",\"id\":");
    AppendJsonString(id_, &body);
  }
  body.append(",\"outputs\":[");
  std::vector<const OutputColumn*> behind;
  for (const OutputColumn& output : outputs.outputs) {
    body.append(&output == outputs.outputs.begin() ? "{\"name\":" : ",{\"name\":");
    AppendJsonString(output.name, &body);
    body.append(",\"datatype\":\"").append(InferDatatypeName(output.dtype)).append("\"");
    AppendShape(output, &body);
    if (IsBinary(output.name)) {
      const std::string size = std::to_string(RawSize(output));
      body.append(",\"parameters\":{\"binary_data_size\":").append(size).append("}");
      behind.push_back(&output);
    } else if (Status status = AppendData(output, &body); !status.ok()) {
      return status;
    }
    body.push_back('}');
  }
  body.append("]}");
  if (!behind.empty()) AppendBinary(behind, response);
  return OkStatus();
}

}  // namespace colcast::http
