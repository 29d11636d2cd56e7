#include "server/engine/record/export_record.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/record/row_record.h"

namespace colcast::engine {
namespace {

using rapidjson::Value;

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("colcast.json: ", what));
}

// Reads a feature's record, including whether the feature is the user's. Returns false if a
// tf.Example cannot hold it.
bool ReadFeatureOfSide(const Value& recorded, ExampleFeature* feature) {
  std::string side;
  if (!ReadText(recorded, "side", &side)) return false;
  feature->user = side == "user";
  if (!ReadFeature(recorded, feature)) return false;
  const DataType dtype = feature->dtype;
  return dtype == DT_INT64 || dtype == DT_FLOAT || dtype == DT_STRING;
}

// Why the graph's parse op must read tf.Examples; empty if it need not.
std::string NotTranscoded(const Value& recorded) {
  const Value* const transcoding = Member(recorded, "example_transcoding");
  if (transcoding == nullptr) return "the export predates this record; export the model again";
  if (transcoding->IsBool() && transcoding->GetBool()) return "";
  return transcoding->IsString() ? std::string(Text(*transcoding)) : "the export ruled it out";
}

absl::Status ReadFeatures(const Value& recorded, ConvertedSignature* signature) {
  const Value* const features = Member(recorded, "features");
  if (features == nullptr || !features->IsObject()) return Wrong("no features");
  for (const auto& member : features->GetObject()) {
    ExampleFeature feature;
    feature.name = std::string(Text(member.name));
    if (!ReadFeatureOfSide(member.value, &feature)) {
      return Wrong(absl::StrCat("feature \"", feature.name, "\" of signature \"",
                                signature->columnar, "\" is not one that a server can read"));
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
  if (!ParseJson(json, &document)) return Wrong("not JSON");
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
