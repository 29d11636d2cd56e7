#include <absl/flags/flag.h>
#include <absl/strings/str_join.h>

#include <string>
#include <vector>

#include "server/flags/parts.h"

namespace colcast::flags {

// A flag that may be given several times.
struct RepeatedPath {
  std::vector<std::string> paths;
};

std::string AbslUnparseFlag(const RepeatedPath& flag) { return absl::StrJoin(flag.paths, " "); }

bool AbslParseFlag(absl::string_view text, RepeatedPath* flag, std::string*) {
  // abseil hands over a value of its own each time; what came before is kept here. The empty text
  // is the default's.
  static auto* const given = new std::vector<std::string>;
  if (!text.empty()) given->emplace_back(text);
  flag->paths = *given;
  return true;
}

}  // namespace colcast::flags

ABSL_FLAG(colcast::flags::RepeatedPath, op_library, {},
          "path of a library of custom ops to load before any model; may be given several times. "
          "TF Text's and Decision Forests' ops are found by themselves where tensorflow-text and "
          "ydf-tf are installed beside TensorFlow");
ABSL_FLAG(std::string, op_library_check, "",
          "set by the server for the process of a --load_check: the library to load, then to end");

namespace colcast::flags {

Status ReadOpLibraryFlags(std::vector<std::string>* paths, std::string* check) {
  *check = absl::GetFlag(FLAGS_op_library_check);
  *paths = absl::GetFlag(FLAGS_op_library).paths;
  return OkStatus();
}

}  // namespace colcast::flags
