#include "server/engine/op_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/log/globals.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/op.h"

namespace colcast::engine {

namespace {

// A package of ops and where it keeps its libraries. TF Text's older ops have no common prefix, so
// they are listed.
struct OpPackage {
  // The pip package. If `folder` is set, the package has one release per TensorFlow release.
  const char* name;
  // Folder of its libraries, beside TensorFlow's; nullptr if the libraries are not searched for.
  const char* folder;
  const char* prefix;  // common prefix of its ops' names
  std::vector<std::string_view> ops;
  const char* formerly = nullptr;  // the package that had the ops earlier, if any
};

const std::vector<OpPackage>& Packages() {
  static const auto* const packages = new std::vector<OpPackage>{
      {"tensorflow-text",
       "tensorflow_text/python/ops",
       "TFText>",
       {"CaseFoldUTF8",
        "ConstrainedSequence",
        "FastBertNormalize",
        "FastWordpieceTokenizeWithOffsets",
        "FindSourceOffsets",
        "MaxSpanningTree",
        "NormalizeUTF8",
        "NormalizeUTF8WithOffsetsMap",
        "PhraseTokenize",
        "RegexSplitWithOffsets",
        "SentenceFragments",
        "SentenceFragmentsV2",
        "SentencepieceDetokenizeOp",
        "SentencepieceIdToStringOp",
        "SentencepieceOp",
        "SentencepieceStringToIdOp",
        "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp",
        "SentencepieceVocabSizeOp",
        "SplitMergeTokenizeWithOffsets",
        "TokenizerFromLogits",
        "UnicodeScriptTokenizeWithOffsets",
        "WhitespaceTokenizeWithOffsets",
        "WordpieceTokenizeWithOffsets"}},
      {"ydf-tf", "ydf_tf", "SimpleML", {}, "tensorflow_decision_forests"},
      {"tensorflow-addons", nullptr, "Addons>", {}},
      {"tensorflow-io", nullptr, "IO>", {}},
      {"tensorflow-recommenders-addons", nullptr, "TFRA>", {}},
  };
  return *packages;
}

// The command that installs a package for the running TensorFlow.
std::string Installation(const OpPackage& package) {
  if (package.folder == nullptr) return absl::StrCat("pip install --no-deps ", package.name);
  const std::string_view release = TF_Version();
  return absl::StrCat("pip install --no-deps ", package.name,
                      "==", release.substr(0, release.rfind('.')), ".*");
}

const OpPackage* PackageOf(std::string_view op) {
  for (const OpPackage& package : Packages()) {
    if (absl::StartsWith(op, package.prefix) ||
        std::find(package.ops.begin(), package.ops.end(), op) != package.ops.end()) {
      return &package;
    }
  }
  return nullptr;
}

// Extracts NAME from "Op type not registered 'NAME' in binary running on ..."; empty for other
// errors.
std::string_view MissingOp(std::string_view message) {
  constexpr std::string_view kStart = "Op type not registered '";
  const size_t start = message.find(kStart);
  if (start == std::string_view::npos) return {};
  const std::string_view rest = message.substr(start + kStart.size());
  return rest.substr(0, rest.find('\''));
}

// The folder that contains TensorFlow's folder: site-packages if pip installed it.
std::filesystem::path PackagesFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&TF_LoadLibrary), &info) == 0) return {};
  return std::filesystem::path(info.dli_fname).parent_path().parent_path();
}

std::vector<std::string> LibrariesIn(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Explains a missing symbol: the library was built for another TensorFlow. Says what to install if
// the path belongs to a known package.
std::string MadeForAnother(const std::string& path) {
  const auto is_in = [&path](std::string_view folder) {
    return absl::StrContains(path, absl::StrCat("/", folder, "/"));
  };
  std::string advice = "install a release that was built for this one";
  for (const OpPackage& package : Packages()) {
    const bool has_path = (package.folder != nullptr && is_in(package.folder)) ||
                          (package.formerly != nullptr && is_in(package.formerly));
    if (has_path) advice = Installation(package);
  }
  return absl::StrCat("it was built for another TensorFlow than this server's ", TF_Version(), ": ",
                      advice);
}

// Loads all libraries of a package. Returns NOT_FOUND if none is installed or one cannot be loaded.
absl::Status LoadPackage(const OpPackage& package) {
  const std::vector<std::string> paths = package.folder == nullptr
                                             ? std::vector<std::string>()
                                             : LibrariesIn(PackagesFolder() / package.folder);
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(
        package.name, " has it and is not installed beside TensorFlow: install it there (",
        Installation(package), "), or name its library with --op_library"));
  }
  for (const std::string& path : paths) {
    if (absl::Status status = LoadOpLibrary(path); !status.ok()) {
      return absl::NotFoundError(absl::StrCat(package.name, " has it, but ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadOpLibrary(const std::string& path) {
  const std::unique_ptr<TF_Status, void (*)(TF_Status*)> status(TF_NewStatus(), TF_DeleteStatus);
  const absl::LogSeverityAtLeast log_level = absl::MinLogLevel();
  TF_Library* const library = TF_LoadLibrary(path.c_str(), status.get());
  // Loading a library that defines abseil's log flags resets the level to the default.
  absl::SetMinLogLevel(log_level);
  if (TF_GetCode(status.get()) != TF_OK) {
    const std::string_view reason = TF_Message(status.get());
    const bool symbol = absl::StrContains(reason, "undefined symbol");
    return absl::InvalidArgumentError(
        symbol ? absl::StrCat("the op library ", path, " cannot be loaded: ", MadeForAnother(path),
                              " (", reason, ")")
               : absl::StrCat("the op library ", path, " cannot be loaded: ", reason));
  }
  TF_DeleteLibraryHandle(library);  // frees the list of its ops; the library itself stays loaded
  return absl::OkStatus();
}

namespace {

// Loads the installed package that has the op, unless the op is registered. The error says what to
// do.
absl::Status ProvideOp(const std::string& op) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const tensorflow::OpRegistrationData* registered = nullptr;
  if (tensorflow::OpRegistry::Global()->LookUp(op, &registered).ok()) return absl::OkStatus();
  const OpPackage* const package = PackageOf(op);
  if (package == nullptr) {
    return absl::NotFoundError(
        "it is not one of TensorFlow's, and no package is known to have it; name the library that "
        "does with --op_library");
  }
  static auto* const loaded = new std::set<const OpPackage*>;
  if (loaded->count(package) > 0) {
    return absl::NotFoundError(absl::StrCat("the installed ", package->name, " does not have it"));
  }
  absl::Status status = LoadPackage(*package);
  if (status.ok()) loaded->insert(package);
  return status;
}

}  // namespace

absl::Status WithMissingOp(const absl::Status& error) {
  const std::string op(MissingOp(error.message()));
  const absl::Status provided = op.empty() ? absl::OkStatus() : ProvideOp(op);
  if (provided.ok()) return error;
  return absl::Status(error.code(),
                      absl::StrCat("the op \"", op, "\" is not registered: ", provided.message()));
}

void ProvideOpsOf(const tensorflow::GraphDef& graph) {
  std::set<std::string> ops;
  for (const auto& node : graph.node()) ops.insert(node.op());
  for (const auto& function : graph.library().function()) {
    for (const auto& node : function.node_def()) ops.insert(node.op());
  }
  for (const auto& function : graph.library().function()) ops.erase(function.signature().name());
  for (const std::string& op : ops) ProvideOp(op).IgnoreError();
}

}  // namespace colcast::engine
