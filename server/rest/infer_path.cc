#include "server/rest/infer_path.h"

#include <string>
#include <vector>

#include "server/base/text.h"
#include "server/wire/infer_request.h"
#include "server/wire/infer_tensor.h"

namespace colcast::http {
namespace {

using Parts = std::vector<std::string_view>;

// The segments between slashes; a trailing slash is ignored.
Parts Split(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    if (path.empty()) break;
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

// Reads the parts after /v2/models.
bool ReadModel(bool get, Parts parts, InferCall* call) {
  const bool is_verb = parts.size() % 2 == 0;
  if (is_verb != !get && (!is_verb || parts.back() != "ready")) return false;
  call->method = InferMethod::kModel;
  if (is_verb) {
    if (!get && parts.back() != "infer") return false;
    call->method = get ? InferMethod::kModelReady : InferMethod::kInfer;
    parts.pop_back();
  }
  if (parts.size() != 1 && (parts.size() != 3 || parts[1] != "versions")) return false;
  if (parts[0].empty() || parts.back().empty()) return false;
  call->model.name = PercentDecode(parts[0]);
  if (parts.size() == 3) SetInferVersion(PercentDecode(parts[2]), &call->model);
  return true;
}

bool Read(bool get, const Parts& parts, InferCall* call) {
  const auto is = [&](const Parts& wanted) { return parts == wanted; };
  if (get && is({"v2"})) {
    call->method = InferMethod::kServer;
  } else if (get && is({"v2", "health", "live"})) {
    call->method = InferMethod::kLive;
  } else if (get && is({"v2", "health", "ready"})) {
    call->method = InferMethod::kReady;
  } else if (!get && is({"v2", "repository", "index"})) {
    call->method = InferMethod::kIndex;
  } else {
    return parts.size() > 2 && parts[0] == "v2" && parts[1] == "models" &&
           ReadModel(get, {parts.begin() + 2, parts.end()}, call);
  }
  return true;
}

void ReadQuery(std::string_view query, ModelSpec* model) {
  const std::string wanted = std::string(kSignatureParameter) + '=';
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    if (part.substr(0, wanted.size()) == wanted) {
      model->signature_name = PercentDecode(part.substr(wanted.size()));
    }
    query.remove_prefix(part.size());
    if (!query.empty()) query.remove_prefix(1);
  }
}

}  // namespace

Status ParseInferPath(std::string_view http_method, std::string_view target, InferCall* call) {
  const size_t end = target.find('?');
  const bool get = http_method == "GET";
  const bool known = (get || http_method == "POST") && target.substr(0, 1) == "/" &&
                     Read(get, Split(target.substr(0, end)), call);
  if (!known) return NotFound("Not found: ", http_method, " ", target);
  if (end != std::string_view::npos) ReadQuery(target.substr(end + 1), &call->model);
  return OkStatus();
}

}  // namespace colcast::http
