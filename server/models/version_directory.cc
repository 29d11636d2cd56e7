#include "server/models/version_directory.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "server/base/file.h"
#include "server/wire/feature_json.h"

namespace colcast::models {
namespace {

namespace fs = std::filesystem;

// Returns false unless the name is a decimal number that fits an int64.
bool ParseVersion(std::string_view name, int64_t* version) {
  const bool digits_only = std::all_of(name.begin(), name.end(), [](char c) {
    return c >= '0' && c <= '9';  // so "-1" is not a version
  });
  return !name.empty() && digits_only &&
         std::from_chars(name.data(), name.data() + name.size(), *version).ec == std::errc();
}

bool HoldsSavedModel(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "saved_model.pb", ignored) ||
         fs::is_regular_file(directory / "saved_model.pbtxt", ignored);
}

void AddEntry(const fs::path& path, BasePathListing* listing) {
  int64_t version = 0;
  const bool is_number = ParseVersion(path.filename().native(), &version);
  if (!HoldsSavedModel(path)) {
    if (is_number) {
      listing->warnings.push_back(path.native() + " is left out until it holds a saved_model.pb");
    }
  } else if (is_number) {
    listing->versions.push_back({version, path.native()});
  } else {
    listing->unnumbered.push_back(path.filename());
  }
}

// Keeps one directory per version: the last one in the sorted list.
void DropDoubles(BasePathListing* listing) {
  std::vector<VersionDirectory> listed;
  for (VersionDirectory& directory : listing->versions) {
    if (listed.empty() || listed.back().version != directory.version) {
      listed.push_back(std::move(directory));
      continue;
    }
    listing->warnings.push_back(listed.back().path + " is left out: " + directory.path +
                                " is version " + std::to_string(directory.version) + ", too");
    listed.back() = std::move(directory);
  }
  listing->versions = std::move(listed);
}

Status ReadCrc32(const File& file, std::string* crc32_text) {
  constexpr size_t kBlock = 1 << 20;
  const auto block = std::make_unique<char[]>(kBlock);
  uLong sum = crc32(0, nullptr, 0);
  for (size_t at = 0; at < file.size(); at += kBlock) {
    const size_t size = std::min(kBlock, file.size() - at);
    if (Status status = file.ReadAt(at, size, block.get()); !status.ok()) return status;
    sum = crc32(sum, reinterpret_cast<const Bytef*>(block.get()), static_cast<uInt>(size));
  }
  char text[9];
  std::snprintf(text, sizeof(text), "%08lx", sum);
  *crc32_text = text;
  return OkStatus();
}

Status NotWhole(const std::string& path, const std::string& what) {
  return Unavailable(path, " ", what,
                     ": the version is still being copied, or was changed by hand (then remove the "
                     "file from \"files\" in assets.extra/colcast.json)");
}

Status CheckFile(const std::string& path, const rapidjson::Value& listed) {
  const rapidjson::Value* const bytes = Member(listed, "bytes");
  if (bytes == nullptr || !bytes->IsUint64()) {
    return InvalidArgument("assets.extra/colcast.json: \"files\" does not say how many bytes ",
                           path, " has");
  }
  File file;
  Status status = File::Open(path, &file);
  if (status.code == StatusCode::kNotFound) return NotWhole(path, "is missing");
  if (!status.ok()) return status;
  if (file.size() != bytes->GetUint64()) {
    return NotWhole(path, "has " + std::to_string(file.size()) + " bytes where the export wrote " +
                              std::to_string(bytes->GetUint64()));
  }
  std::string expected, found;
  if (!ReadText(listed, "crc32", &expected)) return OkStatus();
  status = ReadCrc32(file, &found);
  if (!status.ok() || found == expected) return status;
  return NotWhole(path, "has the checksum " + found + " where the export wrote " + expected);
}

}  // namespace

uint64_t FilesOf(const std::string& directory) {
  uint64_t files = 1;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    if (entry.depth() == 0 && entry->path().filename() == "deltas") {
      entry.disable_recursion_pending();  // deltas are applied while serving (docs/tables.md)
      entry.increment(error);
      continue;
    }
    std::error_code gone;  // files may disappear meanwhile
    const uintmax_t bytes = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    const auto changed = entry->last_write_time(gone).time_since_epoch().count();
    const std::string sizes = ' ' + std::to_string(bytes) + ' ' + std::to_string(changed);
    // A sum, because the order of files varies.
    files += std::hash<std::string>{}(entry->path().native() + sizes);
    entry.increment(error);
  }
  return files;
}

BasePathListing ListVersions(const std::string& base_path) {
  BasePathListing listing;
  std::error_code error;
  fs::directory_iterator entry(base_path, error);
  while (!error && entry != fs::directory_iterator()) {
    AddEntry(entry->path(), &listing);
    entry.increment(error);
  }
  listing.readable = !error;
  listing.is_version = HoldsSavedModel(base_path);
  std::sort(listing.versions.begin(), listing.versions.end(),
            [](const VersionDirectory& a, const VersionDirectory& b) {
              return std::tie(a.version, a.path) < std::tie(b.version, b.path);
            });
  DropDoubles(&listing);
  return listing;
}

bool VersionPolicy::operator==(const VersionPolicy& other) const {
  return std::tie(kind, num_versions, versions) ==
         std::tie(other.kind, other.num_versions, other.versions);
}

std::vector<VersionDirectory> SelectVersions(const VersionPolicy& policy,
                                             const std::vector<VersionDirectory>& on_disk) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      return on_disk;
    case VersionPolicy::Kind::kLatest: {
      const size_t count = std::min<size_t>(policy.num_versions, on_disk.size());
      return {on_disk.end() - static_cast<std::ptrdiff_t>(count), on_disk.end()};
    }
    case VersionPolicy::Kind::kSpecific:
      break;
  }
  std::vector<VersionDirectory> selected;
  std::copy_if(on_disk.begin(), on_disk.end(), std::back_inserter(selected),
               [&](const VersionDirectory& directory) {
                 return std::binary_search(policy.versions.begin(), policy.versions.end(),
                                           directory.version);
               });
  return selected;
}

std::vector<int64_t> MissingVersions(const VersionPolicy& policy,
                                     const std::vector<VersionDirectory>& on_disk) {
  std::vector<int64_t> missing;
  for (const int64_t version : policy.versions) {
    const bool found = std::any_of(
        on_disk.begin(), on_disk.end(),
        [&](const VersionDirectory& directory) { return directory.version == version; });
    if (!found) missing.push_back(version);
  }
  return missing;
}

Status CheckManifest(const std::string& directory) {
  rapidjson::Document record;
  Status status = ReadExportRecord(directory, &record);
  if (status.code == StatusCode::kNotFound) return OkStatus();
  if (!status.ok()) return status;
  ForEachMember(record, "files", [&](const std::string& name, const rapidjson::Value& listed) {
    if (status.ok()) status = CheckFile(directory + '/' + name, listed);
  });
  return status;
}

}  // namespace colcast::models
