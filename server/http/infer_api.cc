#include "server/http/infer_api.h"

#include <string>
#include <utility>

#include "server/base/json_text.h"
#include "server/http/infer_path.h"
#include "server/http/json_reader.h"
#include "server/models/open_inference.h"

namespace colcast::http {
namespace {

using ::inference::ModelMetadataResponse;
using Tensors = google::protobuf::RepeatedPtrField<ModelMetadataResponse::TensorMetadata>;
using Texts = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kMaxIndexBytes = 64 << 10;

void AppendMember(const char* name, std::string_view text, std::string* json) {
  json->append(json->back() == '{' ? "\"" : ",\"").append(name).append("\":");
  json->append(JsonQuoted(text));
}

void AppendTexts(const char* name, const Texts& texts, std::string* json) {
  json->append(",\"").append(name).append("\":[");
  for (int i = 0; i < texts.size(); ++i) {
    if (i > 0) json->push_back(',');
    json->append(JsonQuoted(texts[i]));
  }
  json->push_back(']');
}

void AppendTensors(const char* name, const Tensors& tensors, std::string* json) {
  json->append(",\"").append(name).append("\":[");
  for (int i = 0; i < tensors.size(); ++i) {
    json->append(i > 0 ? ",{" : "{");
    AppendMember("name", tensors[i].name(), json);
    AppendMember("datatype", tensors[i].datatype(), json);
    json->append(",\"shape\":[");
    for (int d = 0; d < tensors[i].shape_size(); ++d) {
      json->append(d > 0 ? "," : "").append(std::to_string(tensors[i].shape(d)));
    }
    json->append("]}");
  }
  json->push_back(']');
}

std::string ServerJson() {
  const auto server = models::DescribeServer();
  std::string json = "{";
  AppendMember("name", server.name(), &json);
  AppendMember("version", server.version(), &json);
  AppendTexts("extensions", server.extensions(), &json);
  return json + '}';
}

Status ModelJson(const models::ModelManager& models, const ModelSpec& spec, std::string* json) {
  ModelMetadataResponse model;
  if (Status status = models::DescribeModel(models, spec, &model); !status.ok()) return status;
  *json = "{";
  AppendMember("name", model.name(), json);
  AppendTexts("versions", model.versions(), json);
  AppendMember("platform", model.platform(), json);
  AppendTensors("inputs", model.inputs(), json);
  AppendTensors("outputs", model.outputs(), json);
  json->push_back('}');
  return OkStatus();
}

// {"ready": true}, or nothing at all.
class IndexReader final : public MembersReader {
 public:
  class Flag final : public ValueReader {
   public:
    bool value() const { return value_; }

   private:
    void OnValue(const JsonValue& value) override {
      if (value.kind != JsonValue::Kind::kBool) {
        return FailAt("\"ready\" is ", value, ", expected true or false");
      }
      value_ = value.truth;
    }
    bool value_ = false;
  };

  const Flag& ready() const { return ready_; }

 private:
  ValueReader* ReaderOf(std::string_view name) override {
    return name == "ready" ? &ready_ : nullptr;
  }

  Flag ready_;
};

Status IndexJson(const models::ModelManager& models, const Request& request, std::string* json) {
  IndexReader reader;
  if (request.body.size() > 0) {
    const BodyBytes body{request.body.slices(), request.gzip, kMaxIndexBytes};
    if (Status status = ReadJson(body, request.memory.get(), &reader); !status.ok()) return status;
    if (!reader.status().ok()) return reader.status();
    if (!reader.ready().status().ok()) return reader.ready().status();
  }
  *json = "[";
  const auto index = models::IndexModels(models, reader.ready().value());
  for (const auto& model : index.models()) {
    json->append(json->size() > 1 ? ",{" : "{");
    AppendMember("name", model.name(), json);
    if (!model.version().empty()) AppendMember("version", model.version(), json);
    AppendMember("state", model.state(), json);
    if (!model.reason().empty()) AppendMember("reason", model.reason(), json);
    json->push_back('}');
  }
  json->push_back(']');
  return OkStatus();
}

// What is not ready is told by a code of 400 and some, as the protocol has it.
Response NotReady(const Status& status) {
  return ErrorResponse(status.code == StatusCode::kNotFound ? 404 : 400, status.message);
}

Response ServerReady(const Backend& backend) {
  if (!*backend.ready) return NotReady(Unavailable("the server is not ready"));
  Response response;
  response.body = "{\"ready\":true}";
  return response;
}

Response ModelReady(const Backend& backend, const ModelSpec& spec) {
  std::shared_ptr<const inference::Servable> servable;
  const Status status = backend.models->Find(spec, &servable);
  if (!status.ok()) return NotReady(status);
  Response response;
  response.body = "{";
  AppendMember("name", spec.name, &response.body);
  response.body += ",\"ready\":true}";
  return response;
}

Response Answer(const Backend& backend, const InferCall& call, const Request& request) {
  Response response;
  Status status;
  switch (call.method) {
    case InferMethod::kServer:
      response.body = ServerJson();
      break;
    case InferMethod::kLive:
      response.body = "{\"live\":true}";
      break;
    case InferMethod::kReady:
      return ServerReady(backend);
    case InferMethod::kModelReady:
      return ModelReady(backend, call.model);
    case InferMethod::kModel:
      status = ModelJson(*backend.models, call.model, &response.body);
      break;
    case InferMethod::kIndex:
      status = IndexJson(*backend.models, request, &response.body);
      break;
    case InferMethod::kInfer:
      break;
  }
  return status.ok() ? response : ErrorResponse(status);
}

}  // namespace

bool WantsInferBody(const Backend& backend, const Request& head) {
  InferCall call;
  if (!ParseInferPath(head.method, head.target, &call).ok()) return false;
  std::shared_ptr<const inference::Servable> servable;
  return call.method == InferMethod::kIndex ||
         (call.method == InferMethod::kInfer && backend.models->Find(call.model, &servable).ok());
}

void ServeInfer(ModelApi* api, std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  InferCall call;
  if (Status status = ParseInferPath(request.method, request.target, &call); !status.ok()) {
    return exchange->Answer(ErrorResponse(status));
  }
  if (call.method != InferMethod::kInfer) {
    return exchange->Answer(Answer(api->backend, call, request));
  }
  RestCall run;
  run.method = RestMethod::kInfer;
  run.model = std::move(call.model);
  RunInference(api, std::move(run), std::move(exchange));
}

}  // namespace colcast::http
