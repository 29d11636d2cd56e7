#include "server/rest/rest_path.h"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "server/base/text.h"
#include "server/http1/message.h"

namespace colcast::http {
namespace {

using Parts = std::vector<std::string_view>;

constexpr std::string_view kServingRoot = "/v1/";

// The segments after the slashes; none for a path that does not begin with a slash.
Parts Split(std::string_view path) {
  Parts parts;
  while (!path.empty() && path.front() == '/') {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

// Parses the segments from NAME on. Sets *found to false if they name no model.
Status ReadServingModel(const Parts& parts, ModelSpec* model, bool* found) {
  *found = parts.size() == 1 || parts.size() == 3;
  for (const std::string_view part : parts) {
    *found &= !part.empty() && part.find(':') == std::string_view::npos;
  }
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
  for (const auto& [verb, named] : {std::pair("predict", RestMethod::kPredict),
                                    {"classify", RestMethod::kClassify},
                                    {"regress", RestMethod::kRegress}}) {
    if (path->substr(colon + 1) != verb) continue;
    *method = named;
    *path = path->substr(0, colon);
    return true;
  }
  return false;
}

Status ParseServingPath(std::string_view http_method, std::string_view target, RestCall* call) {
  const Status malformed = InvalidArgument("Malformed request: ", http_method, " ", target);
  std::string_view path = target;
  const bool get = http_method == "GET";
  if (!get && (http_method != "POST" || !TakeVerb(&path, &call->method))) return malformed;
  Parts parts = Split(path);
  if (parts.size() < 2 || !EqualIgnoringCase(parts[1], "models")) return malformed;
  parts.erase(parts.begin(), parts.begin() + 2);
  if (get) {
    if (parts.empty()) return InvalidArgument("Missing model name in request.");
    call->method = RestMethod::kStatus;
    if (parts.size() % 2 == 0 && EqualIgnoringCase(parts.back(), "metadata")) {
      call->method = RestMethod::kMetadata;
      parts.pop_back();
    }
  }
  bool found = false;
  if (Status status = ReadServingModel(parts, &call->model, &found); !status.ok()) return status;
  return found ? OkStatus() : malformed;
}

}  // namespace

Status ParseRestPath(std::string_view http_method, std::string_view target, RestCall* call) {
  if (EqualIgnoringCase(target.substr(0, kServingRoot.size()), kServingRoot)) {
    return ParseServingPath(http_method, target, call);
  }
  return NotFound(
      "the Open Inference Protocol (/v2) is served over gRPC only; over REST, use "
      "/v1/models/NAME:predict");
}

}  // namespace colcast::http
