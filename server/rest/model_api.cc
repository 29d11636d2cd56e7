#include "server/rest/model_api.h"

#include <google/protobuf/util/json_util.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "server/rest/json_codecs.h"
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

}  // namespace

Status WriteModelStatus(const std::vector<models::VersionStatus>& versions, std::string* json) {
  using tensorflow::serving::ModelVersionStatus;
  tensorflow::serving::GetModelStatusResponse response;
  for (const models::VersionStatus& version : versions) {
    ModelVersionStatus* entry = response.add_model_version_status();
    entry->set_version(version.version);
    entry->set_state(static_cast<ModelVersionStatus::State>(version.state));
    entry->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code));
    entry->mutable_status()->set_error_message(version.error.message);
  }
  return ToJson(response, json);
}

namespace {

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
    std::vector<models::VersionStatus> versions;
    const Status status = api->backend.models->GetStatus(call.model, &versions);
    return status.ok() ? WriteModelStatus(versions, &answer->body) : status;
  }
  std::shared_ptr<const inference::Servable> servable;
  const Status status = api->backend.models->Find(call.model, &servable);
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
  return RunsModel(call.method) && backend.models->Find(call.model, &servable).ok();
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

}  // namespace colcast::http
