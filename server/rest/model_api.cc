#include "server/rest/model_api.h"

#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/text.h"
#include "server/models/open_inference.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::http {

namespace {

Status ToJson(const google::protobuf::Message& message, std::string* json) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(message, json, options);
  if (status.ok()) return OkStatus();
  return Internal("the ", message.GetTypeName(),
                  " cannot be represented in JSON: ", status.ToString());
}

// Writes a GetModelMetadataResponse with the model's signatures.
Status WriteMetadata(const inference::Servable& servable, std::string* json) {
  tensorflow::serving::ModelSpec spec;
  spec.set_name(servable.name());
  spec.mutable_version()->set_value(servable.version());
  tensorflow::serving::SignatureDefMap map;
  *map.mutable_signature_def() = servable.signatures();
  std::string spec_json, map_json;
  if (Status status = ToJson(spec, &spec_json); !status.ok()) return status;
  if (Status status = ToJson(map, &map_json); !status.ok()) return status;
  // Leaves out the Any that holds the signatures, as TF Serving does.
  *json = "{\n\"model_spec\":" + spec_json + ",\n\"metadata\": {\"signature_def\": " + map_json +
          "}\n}\n";
  return OkStatus();
}

}  // namespace

Status MetadataAnswers::Find(const std::shared_ptr<const inference::Servable>& servable,
                             Response* answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, is_new] = answers_.try_emplace(servable);
  if (is_new) {
    Status status = WriteMetadata(*servable, &place->second.body);
    if (!status.ok()) {
      answers_.erase(place);
      return status;
    }
    place->second.gzipped = Gzip(place->second.body);
    for (auto each = answers_.begin(); each != answers_.end();) {
      each = each->first.expired() ? answers_.erase(each) : std::next(each);
    }
  }
  *answer = place->second;
  return OkStatus();
}

namespace {

struct ModelApi {
  ModelApi(const Backend& backend, const ModelApiOptions& options)
      : backend(backend), options(options) {}

  const Backend& backend;
  const ModelApiOptions options;
  MetadataAnswers metadata;
};

// Answers OPTIONS, which browsers send before a cross-origin request.
Response AllowedMethods() {
  Response response;
  response.headers.emplace_back("Allow", "GET, POST, OPTIONS");
  return response;
}

Status Describe(ModelApi* api, const RestCall& call, Response* answer) {
  if (call.method == RestMethod::kStatus) {
    tensorflow::serving::GetModelStatusResponse response;
    const Status status = models::DescribeVersions(*api->backend.models, call.model, &response);
    return status.ok() ? ToJson(response, &answer->body) : status;
  }
  std::shared_ptr<const inference::Servable> servable;
  const Status status = api->backend.served->Find(call.model, &servable);
  return status.ok() ? api->metadata.Find(servable, answer) : status;
}

bool RunsModel(RestMethod method) {
  return method == RestMethod::kPredict || method == RestMethod::kClassify ||
         method == RestMethod::kRegress;
}

// A body is read only for a model that is served.
bool WantsBody(const Backend& backend, const Request& head) {
  RestCall call;
  if (!ParseRestPath(head.method, head.target, &call).ok()) return false;
  std::shared_ptr<const inference::Servable> servable;
  return RunsModel(call.method) && backend.served->Find(call.model, &servable).ok();
}

void Serve(ModelApi* api, std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  RestCall call;
  Status status = ParseRestPath(request.method, request.target, &call);
  if (!status.ok()) return exchange->Answer(ErrorResponse(status));
  if (RunsModel(call.method)) {
    return RunModel(api->backend, api->options.timeout, api->options.max_body_bytes, call,
                    std::move(exchange));
  }
  Response response;
  status = Describe(api, call, &response);
  exchange->Answer(status.ok() ? std::move(response) : ErrorResponse(status));
}

}  // namespace

void AddModelApi(const Backend& backend, const ModelApiOptions& options, Router* router) {
  const auto api = std::make_shared<ModelApi>(backend, options);
  for (const char* const root : {"/v1/", "/v2"}) {
    router->AddTree(
        root,
        [api](std::shared_ptr<Exchange> exchange) {
          exchange->request().any_origin = api->options.cors;
          if (exchange->request().method == "OPTIONS") return exchange->Answer(AllowedMethods());
          Serve(api.get(), std::move(exchange));
        },
        [&backend](const Request& head) { return WantsBody(backend, head); });
  }
}

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
