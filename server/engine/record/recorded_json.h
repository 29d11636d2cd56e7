// assets.extra/colcast.json, which `colcast export` wrote, and what is in its objects.
#ifndef COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
#define COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>

#include "server/wire/example_features.h"

namespace colcast::engine {

bool ParseRecord(std::string_view json, rapidjson::Document* document);

// False if the model in `directory` has no such file.
bool ReadRecordFile(const std::string& directory, std::string* text);

std::string_view Text(const rapidjson::Value& string);

// Null if `object` is none or has no such member.
const rapidjson::Value* Member(const rapidjson::Value& object, const char* name);

// False unless there is such a member and it is a string.
bool ReadText(const rapidjson::Value& object, const char* name, std::string* text);

// A feature's kind. False for what no export writes.
bool ReadKind(const rapidjson::Value& feature, FeatureKind* kind);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
