// Reads the record that `colcast export` writes into assets.extra/colcast.json.
#ifndef COLCAST_SERVER_WIRE_FEATURE_JSON_H_
#define COLCAST_SERVER_WIRE_FEATURE_JSON_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/example_features.h"

namespace colcast {

// Returns false if `json` is not valid JSON.
bool ParseJson(std::string_view json, rapidjson::Document* document);

std::string_view Text(const rapidjson::Value& string);

// Returns null if `object` is not an object or lacks this member.
const rapidjson::Value* Member(const rapidjson::Value& object, const char* name);

// Returns false if the member is missing or not a string.
bool ReadText(const rapidjson::Value& object, const char* name, std::string* text);

// Reads the export record of the version in `directory`. Returns NOT_FOUND if the version has no
// record, UNAVAILABLE if the record is not JSON.
Status ReadExportRecord(const std::string& directory, rapidjson::Document* record);

// Calls visit(name, value) for each member of the object `name` in `object`, if it exists.
template <typename Visit>
void ForEachMember(const rapidjson::Value& object, const char* name, Visit&& visit) {
  const rapidjson::Value* const members = Member(object, name);
  if (members == nullptr || !members->IsObject()) return;
  for (const auto& [key, value] : members->GetObject()) visit(std::string(Text(key)), value);
}

// Reads a feature's kind. Returns false for a kind that no export writes.
bool ReadKind(const rapidjson::Value& feature, FeatureKind* kind);

// Reads a feature's kind, dtype, shape and default. Returns false for a feature that no export
// writes.
bool ReadFeature(const rapidjson::Value& recorded, ExampleFeature* feature);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_FEATURE_JSON_H_
