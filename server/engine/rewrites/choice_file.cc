#include "server/engine/rewrites/choice_file.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/file.h"
#include "server/engine/rewrites/cpu_flags.h"
#include "tensorflow/c/c_api.h"

namespace colcast::engine {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostFiles = 1000;

absl::Status Malformed(const std::string& file, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", why));
}

std::string TextOf(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

// False unless the member is a list of strings.
bool ReadNames(const rapidjson::Value& object, const char* member, std::set<std::string>* names) {
  const auto found = object.FindMember(member);
  if (found == object.MemberEnd() || !found->value.IsArray()) return false;
  for (const rapidjson::Value& name : found->value.GetArray()) {
    if (!name.IsString()) return false;
    names->insert(TextOf(name));
  }
  return true;
}

// NOT_FOUND if the file's choice has another key.
absl::StatusOr<ChoiceFile> ReadChoice(const std::string& file, const std::string& key) {
  std::string text;
  if (const Status status = ReadFile(file, &text, kMostBytes); !status.ok()) {
    return absl::InvalidArgumentError(status.message);
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) return Malformed(file, "is no JSON object");
  ChoiceFile choice{file, {}, {}};
  const auto made_for = document.FindMember("key");
  if (made_for == document.MemberEnd() || !made_for->value.IsString() ||
      !ReadNames(document, "rewrites", &choice.rewrites) ||
      !ReadNames(document, "signatures", &choice.signatures)) {
    return Malformed(file, "is not what `colcast tune --graphs` writes");
  }
  if (TextOf(made_for->value) == key) return choice;
  return absl::NotFoundError(absl::StrCat(file, " is for \"", TextOf(made_for->value), "\""));
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

std::string GraphKey(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs) {
  return absl::StrCat("colcast " COLCAST_VERSION ", TensorFlow ", TF_Version(), ", ",
                      CpuFlags::OfThisMachine().model(), ", graph ",
                      GraphFingerprint(model, graphs));
}

absl::StatusOr<ChoiceFile> FindChoice(const std::string& path, const std::string& key) {
  if (path.empty()) {
    return absl::NotFoundError("--graph_choices names none; `colcast tune --graphs` makes one");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return ReadChoice(path, key);
  const std::vector<std::string> files = ChoiceFiles(path);
  if (files.size() > kMostFiles) {
    return Malformed(path, absl::StrCat("has more than ", kMostFiles, " choices"));
  }
  std::string problems;
  for (const std::string& file : files) {
    absl::StatusOr<ChoiceFile> choice = ReadChoice(file, key);
    if (choice.ok()) return choice;
    if (!absl::IsNotFound(choice.status()))
      absl::StrAppend(&problems, "; ", choice.status().message());
  }
  return absl::NotFoundError(absl::StrCat("none of the ", files.size(), " choices in ", path,
                                          " is for this model and machine", problems));
}

}  // namespace colcast::engine
