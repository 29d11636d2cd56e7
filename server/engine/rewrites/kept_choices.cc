#include "server/engine/rewrites/kept_choices.h"

#include <rapidjson/document.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/warmup_files.h"
#include "tsl/platform/fingerprint.h"

namespace colcast::engine {
namespace {

// Of the model's files, those that say what it is.
constexpr const char* kFiles[] = {"/saved_model.pb", "/saved_model.pbtxt",
                                  "/variables/variables.index", kWarmupFiles[0], kWarmupFiles[1]};

std::string ReadAll(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::ifstream in(path, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : std::string();
}

// Empty unless it is a string.
std::string TextOf(const rapidjson::Value& object, const char* name) {
  const auto found = object.FindMember(name);
  if (found == object.MemberEnd() || !found->value.IsString()) return "";
  return {found->value.GetString(), found->value.GetStringLength()};
}

std::string JsonOf(std::string_view key, const KeptChoices& choices) {
  rapidjson::StringBuffer text;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> json(text);
  const auto write = [&json](std::string_view value) {
    json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  json.StartObject();
  json.Key("key");
  write(key);
  json.Key("signatures");
  json.StartObject();
  for (const auto& [signature, choice] : choices) {
    write(signature);
    json.StartObject();
    json.Key("graph");
    write(choice.graph);
    json.Key("why");
    write(choice.why);
    json.EndObject();
  }
  json.EndObject();
  json.EndObject();
  return {text.GetString(), text.GetSize()};
}

// Paths below the directory of the files that tables are made of.
std::vector<std::string> Assets(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::recursive_directory_iterator file(directory + "/assets", error);
  for (; !error && file != std::filesystem::recursive_directory_iterator(); file.increment(error)) {
    std::error_code no_file;
    if (!file->is_regular_file(no_file)) continue;
    paths.push_back(file->path().string().substr(directory.size()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string ModelFingerprint(const std::string& directory) {
  std::string fingerprints;
  std::vector<std::string> files(std::begin(kFiles), std::end(kFiles));
  for (std::string& asset : Assets(directory)) files.push_back(std::move(asset));
  for (const std::string& file : files) {
    absl::StrAppendFormat(&fingerprints, "%016x",
                          tsl::Fingerprint64(absl::StrCat(file, "=", ReadAll(directory + file))));
  }
  return fingerprints;
}

std::string ChoicesFile(const std::string& folder, std::string_view key) {
  return absl::StrFormat("%s/colcast_graphs_%016x.json", folder, tsl::Fingerprint64(key));
}

KeptChoices ReadChoices(const std::string& file, std::string_view key) {
  rapidjson::Document document;
  const std::string text = ReadAll(file);
  document.Parse(text.data(), text.size());
  KeptChoices choices;
  if (document.HasParseError() || !document.IsObject() || TextOf(document, "key") != key) return {};
  const auto signatures = document.FindMember("signatures");
  if (signatures == document.MemberEnd() || !signatures->value.IsObject()) return {};
  for (const auto& member : signatures->value.GetObject()) {
    if (!member.value.IsObject()) return {};
    choices[std::string(member.name.GetString(), member.name.GetStringLength())] = {
        TextOf(member.value, "graph"), TextOf(member.value, "why")};
  }
  return choices;
}

absl::Status WriteChoices(const std::string& file, std::string_view key,
                          const KeptChoices& choices) {
  const std::string folder = std::filesystem::path(file).parent_path();
  ::mkdir(folder.c_str(), 0777);
  std::string whole = file + ".XXXXXX";  // other servers may write the same file
  const int made = ::mkstemp(whole.data());
  if (made >= 0) {
    ::fchmod(made, 0644);
    ::close(made);
    std::ofstream out(whole, std::ios::binary);
    out << JsonOf(key, choices) << '\n';
    out.close();
    if (out && std::rename(whole.c_str(), file.c_str()) == 0) return absl::OkStatus();
    std::remove(whole.c_str());
  }
  return absl::UnavailableError(absl::StrCat("what was chosen cannot be kept in ", file));
}

}  // namespace colcast::engine
