#include "server/engine/installed_wheel.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace colcast::engine {
namespace {

// The first line that `wanted` accepts, or an empty string.
std::string FindLine(const std::filesystem::path& file,
                     const std::function<bool(std::string_view)>& wanted) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (wanted(line)) return line;
  }
  return {};
}

// "Requires-Dist: tensorflow==2.19.0; python_version ..." -> "tensorflow==2.19.0".
std::string RequiredTensorFlow(const std::filesystem::path& metadata) {
  constexpr std::string_view kField = "Requires-Dist:";
  const auto requirement = [&](std::string_view line) {
    if (!absl::ConsumePrefix(&line, kField)) return std::string_view();
    return absl::StripAsciiWhitespace(line.substr(0, line.find(';')));
  };
  const std::string line = FindLine(metadata, [&](std::string_view line) {
    const std::string_view wanted = requirement(line);
    return wanted.substr(0, wanted.find_first_of(" <>=!~(")) == "tensorflow";
  });
  return std::string(requirement(line));
}

}  // namespace

InstalledWheel WheelOf(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(file, error);
  for (std::filesystem::path folder = path.parent_path(); folder != folder.root_path();
       folder = folder.parent_path()) {
    const std::string entry = path.lexically_relative(folder).string() + ",";
    for (const auto& info : std::filesystem::directory_iterator(folder, error)) {
      if (info.path().extension() != ".dist-info") continue;
      const auto has = [&](std::string_view line) { return absl::StartsWith(line, entry); };
      if (FindLine(info.path() / "RECORD", has).empty()) continue;
      const std::string release = info.path().stem();
      const size_t dash = std::min(release.find('-'), release.size() - 1);
      return {release.substr(0, dash), release.substr(dash + 1),
              RequiredTensorFlow(info.path() / "METADATA")};
    }
  }
  return {};
}

}  // namespace colcast::engine
