// Parses features in the JSON form that `colcast export` writes.
#ifndef COLCAST_SERVER_WIRE_FEATURE_JSON_H_
#define COLCAST_SERVER_WIRE_FEATURE_JSON_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>

#include "server/wire/example_features.h"

namespace colcast {

// Returns false for JSON that no export writes.
bool ParseJson(std::string_view json, rapidjson::Document* document);

std::string_view Text(const rapidjson::Value& string);

// Returns null if `object` is not an object or lacks this member.
const rapidjson::Value* Member(const rapidjson::Value& object, const char* name);

// Returns false if the member is missing or not a string.
bool ReadText(const rapidjson::Value& object, const char* name, std::string* text);

// Reads a feature's kind. Returns false for one that no export writes.
bool ReadKind(const rapidjson::Value& feature, FeatureKind* kind);

// Reads a feature's kind, dtype, shape and default. Returns false for anything that no export
// writes.
bool ReadFeature(const rapidjson::Value& recorded, ExampleFeature* feature);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_FEATURE_JSON_H_
