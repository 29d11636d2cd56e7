// Features as `colcast export` writes them into JSON.
#ifndef COLCAST_SERVER_WIRE_FEATURE_JSON_H_
#define COLCAST_SERVER_WIRE_FEATURE_JSON_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>

#include "server/wire/example_features.h"

namespace colcast {

// False for anything that no export writes.
bool ParseJson(std::string_view json, rapidjson::Document* document);

std::string_view Text(const rapidjson::Value& string);

// Null if `object` is none or has no such member.
const rapidjson::Value* Member(const rapidjson::Value& object, const char* name);

// False unless there is such a member and it is a string.
bool ReadText(const rapidjson::Value& object, const char* name, std::string* text);

// A feature's kind. False for what no export writes.
bool ReadKind(const rapidjson::Value& feature, FeatureKind* kind);

// Its kind, dtype, shape and default. False for what no export writes.
bool ReadFeature(const rapidjson::Value& recorded, ExampleFeature* feature);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_FEATURE_JSON_H_
