#include "server/models/completeness.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string_view>
#include <system_error>

namespace colcast::models {
namespace {

namespace fs = std::filesystem;

bool Contains(const std::string& text, std::string_view word) {
  const std::boyer_moore_horspool_searcher searcher(word.begin(), word.end());
  return std::search(text.begin(), text.end(), searcher) != text.end();
}

}  // namespace

Status CheckComplete(const std::string& directory) {
  std::error_code error;
  if (fs::exists(directory + "/variables/variables.index", error)) return OkStatus();
  // Graphs name an operation as it is in both of protobuf's formats.
  for (const char* name : {"/saved_model.pb", "/saved_model.pbtxt"}) {
    std::ifstream file(directory + name, std::ios::binary);
    const std::string graph{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    for (const char* operation : {"VarHandleOp", "VariableV2"}) {
      if (Contains(graph, operation)) {
        return FailedPrecondition("the graph has variables but there is no ", directory,
                                  "/variables/variables.index: is it still being copied?");
      }
    }
  }
  return OkStatus();
}

}  // namespace colcast::models
