#include "server/models/manifest.h"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "server/base/file.h"
#include "server/wire/feature_json.h"

namespace colcast::models {
namespace {

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
