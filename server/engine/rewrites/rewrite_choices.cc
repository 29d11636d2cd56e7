#include "server/engine/rewrites/rewrite_choices.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/file.h"

namespace colcast::engine {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostFiles = 1000;

std::string TextOf(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// Returns false unless the member is a list of strings.
bool ReadNames(const rapidjson::Value& object, const char* member, std::set<std::string>* names) {
  const auto found = object.FindMember(member);
  if (found == object.MemberEnd() || !found->value.IsArray()) return false;
  for (const rapidjson::Value& name : found->value.GetArray()) {
    if (!name.IsString()) return false;
    names->insert(TextOf(name));
  }
  return true;
}

// Returns NOT_FOUND if the file's choice has another key.
Status ReadChoice(const std::string& file, const std::string& key, ChoiceFile* choice) {
  std::string text;
  const Status status = ReadFile(file, &text, kMostBytes);
  if (!status.ok()) return InvalidArgument(status.message);
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) {
    return InvalidArgument(file, ": is not a JSON object");
  }
  ChoiceFile read{file, {}, {}};
  const auto made_for = document.FindMember("key");
  if (made_for == document.MemberEnd() || !made_for->value.IsString() ||
      !ReadNames(document, "rewrites", &read.rewrites) ||
      !ReadNames(document, "signatures", &read.signatures)) {
    return InvalidArgument(file, ": was not written by `colcast tune --graphs`");
  }
  if (TextOf(made_for->value) != key) {
    return NotFound(file, " is for \"", TextOf(made_for->value), "\"");
  }
  *choice = std::move(read);
  return OkStatus();
}

std::vector<std::string> ChoiceFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Status FindChoice(const std::string& path, const std::string& key, ChoiceFile* choice) {
  if (path.empty()) {
    return NotFound("--graph_choices names none; `colcast tune --graphs` writes one");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return ReadChoice(path, key, choice);
  const std::vector<std::string> files = ChoiceFiles(path);
  if (files.size() > kMostFiles) {
    return InvalidArgument(path, ": has more than ", kMostFiles, " choices");
  }
  std::string problems;
  for (const std::string& file : files) {
    const Status status = ReadChoice(file, key, choice);
    if (status.ok()) return status;
    if (status.code != StatusCode::kNotFound) problems += "; " + status.message;
  }
  return NotFound("none of the ", files.size(), " choices in ", path,
                  " is for this model and machine", problems);
}

}  // namespace colcast::engine
