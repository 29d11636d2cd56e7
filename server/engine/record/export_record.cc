#include "server/engine/record/export_record.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/engine/record/recorded_json.h"

namespace colcast::engine {
namespace {

using rapidjson::Value;

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("colcast.json: ", what));
}

bool ReadDtype(const Value& feature, DataType* dtype) {
  std::string name;
  if (!ReadText(feature, "dtype", &name)) return false;
  *dtype = name == "int64"     ? DT_INT64
           : name == "float32" ? DT_FLOAT
           : name == "string"  ? DT_STRING
                               : DT_INVALID;
  return *dtype != DT_INVALID;
}

bool ReadShape(const Value& feature, std::vector<int64_t>* shape) {
  const Value* const sizes = Member(feature, "shape");
  if (sizes == nullptr || !sizes->IsArray()) return false;
  for (const Value& size : sizes->GetArray()) {
    if (!size.IsInt64()) return false;
    shape->push_back(size.GetInt64());
  }
  return true;
}

template <typename Number>
void AppendNumber(Number number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// A string is text or, where it is no UTF-8, {"hex": "..."}.
bool AppendString(const Value& value, std::string* out) {
  std::string hex, bytes;
  if (value.IsString()) {
    *out += StringRecord(Text(value));
  } else if (ReadText(value, "hex", &hex) && absl::HexStringToBytes(hex, &bytes)) {
    *out += StringRecord(bytes);
  } else {
    return false;
  }
  return true;
}

bool AppendDefault(const Value& value, DataType dtype, std::string* out) {
  if (dtype == DT_STRING) return AppendString(value, out);
  if (dtype == DT_INT64) {
    if (!value.IsInt64()) return false;
    AppendNumber(value.GetInt64(), out);
    return true;
  }
  // Which NaN it was is not written.
  if (!value.IsNumber() || std::isnan(value.GetDouble())) return false;
  AppendNumber(static_cast<float>(value.GetDouble()), out);
  return true;
}

bool ReadDefaults(const Value& recorded, ExampleFeature* feature) {
  const Value* const values = Member(recorded, "default");
  if (values == nullptr) return false;
  feature->required = feature->kind == FeatureKind::kFixedLen && values->IsNull();
  if (values->IsNull()) return true;
  if (!values->IsArray()) return false;
  for (const Value& value : values->GetArray()) {
    if (!AppendDefault(value, feature->dtype, &feature->default_values)) return false;
  }
  return true;
}

bool ReadFeature(const Value& recorded, ExampleFeature* feature) {
  std::string side;
  if (!ReadText(recorded, "side", &side)) return false;
  feature->user = side == "user";
  return ReadKind(recorded, &feature->kind) && ReadDtype(recorded, &feature->dtype) &&
         ReadShape(recorded, &feature->shape) && ReadDefaults(recorded, feature);
}

// Why tf.Examples must be left to the parse; empty if not.
std::string NotTranscoded(const Value& recorded) {
  const Value* const transcoding = Member(recorded, "example_transcoding");
  if (transcoding == nullptr) return "it was exported before this was recorded; export it again";
  if (transcoding->IsBool() && transcoding->GetBool()) return "";
  return transcoding->IsString() ? std::string(Text(*transcoding)) : "the export said no";
}

absl::Status ReadFeatures(const Value& recorded, ConvertedSignature* signature) {
  const Value* const features = Member(recorded, "features");
  if (features == nullptr || !features->IsObject()) return Wrong("no features");
  for (const auto& member : features->GetObject()) {
    ExampleFeature feature;
    feature.name = std::string(Text(member.name));
    if (!ReadFeature(member.value, &feature)) {
      return Wrong(absl::StrCat("feature \"", feature.name, "\" of signature \"",
                                signature->columnar, "\" is none that a server can read"));
    }
    signature->features.push_back(std::move(feature));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvertedSignature> ReadSignature(std::string_view name, const Value& recorded) {
  ConvertedSignature signature;
  signature.columnar = std::string(name);
  if (!ReadText(recorded, "source", &signature.source) ||
      !ReadText(recorded, "source_input", &signature.source_input)) {
    return Wrong(absl::StrCat("signature \"", name, "\" has no source"));
  }
  if (const Value* const late = Member(recorded, "late"); late != nullptr && late->IsObject()) {
    ReadText(*late, "signature", &signature.late);
  }
  signature.not_transcoded = NotTranscoded(recorded);
  if (absl::Status status = ReadFeatures(recorded, &signature); !status.ok()) return status;
  return signature;
}

}  // namespace

absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecord(std::string_view json) {
  rapidjson::Document document;
  if (!ParseRecord(json, &document)) return Wrong("no JSON");
  const Value* const signatures = Member(document, "signatures");
  if (signatures == nullptr || !signatures->IsObject()) return Wrong("no signatures");
  std::vector<ConvertedSignature> read;
  for (const auto& member : signatures->GetObject()) {
    const Value* const input = Member(member.value, "source_input");
    if (input != nullptr && input->IsNull()) continue;  // its source takes tensors
    absl::StatusOr<ConvertedSignature> signature = ReadSignature(Text(member.name), member.value);
    if (!signature.ok()) return signature.status();
    read.push_back(*std::move(signature));
  }
  return read;
}

absl::StatusOr<std::vector<ConvertedSignature>> ReadExportRecordOf(const std::string& directory) {
  std::string text;
  if (!ReadRecordFile(directory, &text)) return std::vector<ConvertedSignature>();
  return ReadExportRecord(text);
}

}  // namespace colcast::engine
