#include "server/rest/rest_path.h"

#include <strings.h>

#include <charconv>
#include <string>
#include <vector>

#include "server/base/text.h"

namespace colcast::http {
namespace {

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// The segments after "/v1/models"; false if the path begins otherwise.
bool SplitPath(std::string_view path, std::vector<std::string_view>* parts) {
  constexpr std::string_view kRoot = "/v1/models";
  if (!EqualIgnoringCase(path.substr(0, kRoot.size()), kRoot)) return false;
  path.remove_prefix(kRoot.size());
  while (!path.empty()) {
    if (path.front() != '/') return false;
    path.remove_prefix(1);
    parts->push_back(path.substr(0, path.find('/')));
    if (parts->back().empty()) return false;
    path.remove_prefix(parts->back().size());
  }
  return true;
}

// The segments from NAME on. Sets *found to false if they name no model.
Status ReadModel(const std::vector<std::string_view>& parts, ModelSpec* model, bool* found) {
  *found = parts.size() == 1 || parts.size() == 3;
  for (const std::string_view part : parts) *found &= part.find(':') == std::string_view::npos;
  if (!*found) return OkStatus();
  model->name = PercentDecode(parts[0]);
  if (parts.size() == 1) return OkStatus();
  const std::string_view value = parts[2];
  if (EqualIgnoringCase(parts[1], "labels")) {
    model->version_label = PercentDecode(value);
  } else if (EqualIgnoringCase(parts[1], "versions") &&
             value.find_first_not_of("0123456789") == std::string_view::npos) {
    int64_t version = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), version).ec != std::errc()) {
      return InvalidArgument("Failed to convert version: ", value, " to numeric.");
    }
    model->version = version;
  } else {
    *found = false;
  }
  return OkStatus();
}

bool TakeVerb(std::string_view* path, RestMethod* method) {
  const size_t colon = path->rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view verb = path->substr(colon + 1);
  if (verb == "predict") {
    *method = RestMethod::kPredict;
  } else if (verb == "classify") {
    *method = RestMethod::kClassify;
  } else if (verb == "regress") {
    *method = RestMethod::kRegress;
  } else {
    return false;
  }
  *path = path->substr(0, colon);
  return true;
}

}  // namespace

Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call) {
  const Status malformed = InvalidArgument("Malformed request: ", http_method, " ", target);
  std::string_view path = target;
  std::vector<std::string_view> parts;
  const bool get = http_method == "GET";
  if (!get && (http_method != "POST" || !TakeVerb(&path, &call->method))) return malformed;
  if (!SplitPath(path, &parts)) return malformed;
  if (get) {
    if (parts.empty()) return InvalidArgument("Missing model name in request.");
    call->method = RestMethod::kStatus;
    if (parts.size() % 2 == 0 && EqualIgnoringCase(parts.back(), "metadata")) {
      call->method = RestMethod::kMetadata;
      parts.pop_back();
    }
  }
  bool found = false;
  if (Status status = ReadModel(parts, &call->model, &found); !status.ok()) return status;
  return found ? OkStatus() : malformed;
}

}  // namespace colcast::http
