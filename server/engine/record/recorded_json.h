// assets.extra/colcast.json, which `colcast export` wrote, and what is in its objects.
#ifndef COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
#define COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_

#include <string>

#include "server/wire/feature_json.h"

namespace colcast::engine {

// False if the model in `directory` has no such file. models/version_directory.h refuses one that
// cannot be read.
bool ReadRecordFile(const std::string& directory, std::string* text);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
