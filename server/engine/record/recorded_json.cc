#include "server/engine/record/recorded_json.h"

#include "server/base/file.h"

namespace colcast::engine {

bool ReadRecordFile(const std::string& directory, std::string* text) {
  return ReadFile(directory + "/assets.extra/colcast.json", text).ok();
}

}  // namespace colcast::engine
