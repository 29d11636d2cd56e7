#include "server/engine/record/recorded_json.h"

#include <fstream>
#include <iterator>

namespace colcast::engine {

bool ReadRecordFile(const std::string& directory, std::string* text) {
  std::ifstream in(directory + "/assets.extra/colcast.json", std::ios::binary);
  if (!in) return false;
  text->assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

}  // namespace colcast::engine
