// Reads assets.extra/colcast.json, the record of `colcast export`, and the objects in it.
#ifndef COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
#define COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_

#include <string>

#include "server/wire/feature_json.h"

namespace colcast::engine {

// Returns false if the model in `directory` has no such file. A file that cannot be read is refused
// earlier, in models/version_directory.h.
bool ReadRecordFile(const std::string& directory, std::string* text);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_RECORDED_JSON_H_
