#include "server/models/version_directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace colcast::models {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> ParseVersion(std::string_view name) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  if (error != std::errc() || end != name.data() + name.size() || version < 0) return std::nullopt;
  return version;
}

bool HoldsSavedModel(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "saved_model.pb", ignored) ||
         fs::is_regular_file(directory / "saved_model.pbtxt", ignored);
}

}  // namespace

std::vector<VersionDirectory> ListVersions(const std::string& base_path) {
  std::vector<VersionDirectory> versions;
  std::error_code error;
  fs::directory_iterator entry(base_path, error);
  while (!error && entry != fs::directory_iterator()) {
    const fs::path path = entry->path();
    const std::optional<int64_t> version = ParseVersion(path.filename().native());
    if (version && HoldsSavedModel(path)) versions.push_back({*version, path.native()});
    entry.increment(error);
  }
  std::sort(
      versions.begin(), versions.end(),
      [](const VersionDirectory& a, const VersionDirectory& b) { return a.version < b.version; });
  return versions;
}

}  // namespace colcast::models
