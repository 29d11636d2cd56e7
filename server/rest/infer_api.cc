// The Open Inference Protocol over REST, under /v2 (docs/inference_protocol.md).
#include <memory>
#include <string>

#include "server/base/text.h"
#include "server/models/open_inference.h"
#include "server/rest/json_reader.h"
#include "server/rest/model_api.h"

namespace colcast::http {
namespace {

using ::inference::ModelMetadataResponse;
using Tensors = google::protobuf::RepeatedPtrField<ModelMetadataResponse::TensorMetadata>;
using Texts = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kMaxIndexBytes = 64 << 10;

void AddTexts(const char* name, const Texts& texts, JsonWriter* json) {
  json->List(name, [&] {
    for (const std::string& text : texts) json->Add(text);
  });
}

void AddTensors(const char* name, const Tensors& tensors, JsonWriter* json) {
  json->List(name, [&] {
    for (const auto& tensor : tensors) {
      json->Object([&] {
        json->Add({{"name", tensor.name()}, {"datatype", tensor.datatype()}});
        json->List("shape", [&] {
          for (const int64_t size : tensor.shape()) json->Add(size);
        });
      });
    }
  });
}

std::string ServerJson() {
  const auto server = models::DescribeServer();
  JsonWriter json;
  json.Object([&] {
    json.Add({{"name", server.name()}, {"version", server.version()}});
    AddTexts("extensions", server.extensions(), &json);
  });
  return json.text();
}

Status ModelJson(const models::ModelManager& models, const ModelSpec& spec, std::string* text) {
  ModelMetadataResponse model;
  if (Status status = models::DescribeModel(models, spec, &model); !status.ok()) return status;
  JsonWriter json;
  json.Object([&] {
    json.Add({{"name", model.name()}});
    AddTexts("versions", model.versions(), &json);
    json.Add({{"platform", model.platform()}});
    AddTensors("inputs", model.inputs(), &json);
    AddTensors("outputs", model.outputs(), &json);
  });
  *text = json.text();
  return OkStatus();
}

// Reads {"ready": true}, or an empty body.
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

Status IndexJson(const models::ModelManager& models, const Request& request, std::string* text) {
  IndexReader reader;
  if (request.body.size() > 0) {
    const BodyBytes body{request.body.slices(), request.gzip, kMaxIndexBytes};
    if (Status status = ReadJson(body, request.memory.get(), &reader); !status.ok()) return status;
    if (!reader.status().ok()) return reader.status();
    if (!reader.ready().status().ok()) return reader.ready().status();
  }
  const auto index = models::IndexModels(models, reader.ready().value());
  JsonWriter json;
  json.List([&] {
    for (const auto& model : index.models()) {
      json.Object([&] {
        json.Add({{"name", model.name()}});
        if (!model.version().empty()) json.Add({{"version", model.version()}});
        json.Add({{"state", model.state()}});
        if (!model.reason().empty()) json.Add({{"reason", model.reason()}});
      });
    }
  });
  *text = json.text();
  return OkStatus();
}

// The protocol requires a 4xx code.
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
  JsonWriter json;
  json.Object({{"name", spec.name}, {"ready", true}});
  Response response;
  response.body = json.text();
  return response;
}

}  // namespace

Response AnswerInfer(const Backend& backend, const RestCall& call, const Request& request) {
  Response response;
  Status status;
  switch (call.method) {
    case RestMethod::kServer:
      response.body = ServerJson();
      break;
    case RestMethod::kLive:
      response.body = "{\"live\":true}";
      break;
    case RestMethod::kReady:
      return ServerReady(backend);
    case RestMethod::kModelReady:
      return ModelReady(backend, call.model);
    case RestMethod::kModel:
      status = ModelJson(*backend.models, call.model, &response.body);
      break;
    case RestMethod::kIndex:
      status = IndexJson(*backend.models, request, &response.body);
      break;
    default:  // model_api.cc answers the other methods
      break;
  }
  return status.ok() ? response : ErrorResponse(status);
}

}  // namespace colcast::http
