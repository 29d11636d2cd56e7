#include "server/rpc/standard_services.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "grpc_health/v1/health.pb.h"
#include "grpc_reflection/v1alpha/reflection.pb.h"
#include "server/rpc/messages.h"

namespace colcast::rpc {

namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

HealthCheckResponse Response(bool serving) {
  HealthCheckResponse response;
  response.set_status(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return response;
}

}  // namespace

// A client that watches a service. The protocol does not treat an unknown service as an error: the
// client gets SERVICE_UNKNOWN and keeps watching.
class HealthService::Watch final : public http2::StreamHandler {
 public:
  Watch(HealthService* health, Call* call) : health_(health), call_(call) {}

  ~Watch() override {
    const std::lock_guard<std::mutex> lock(health_->mutex_);
    health_->watches_.erase(this);
  }

  void Received(const Message& message) override {
    HealthCheckRequest request;
    if (Status status = ReadMessage(message, &request); !status.ok()) {
      return call_->Finish(status);
    }
    if (!health_->Knows(request.service())) {
      HealthCheckResponse unknown;
      unknown.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
      return Send(unknown);
    }
    const std::lock_guard<std::mutex> lock(health_->mutex_);
    health_->watches_.insert(this);
    Send(Response(health_->serving_));
  }

  void Closed() override { call_->Finish(InvalidArgument("Watch needs a HealthCheckRequest")); }

  void Send(const HealthCheckResponse& response) {
    Message bytes;
    if (Status status = WriteMessage(response, &bytes); !status.ok()) return call_->Finish(status);
    call_->Send(std::move(bytes));
  }

 private:
  HealthService* const health_;
  Call* const call_;
};

http2::Methods HealthService::Methods() {
  const auto check = [this](const HealthCheckRequest& request, HealthCheckResponse* response) {
    if (!Knows(request.service())) return NotFound("service name unknown");
    *response = Response(serving());
    return OkStatus();
  };
  const auto list = [this](const HealthListRequest&, HealthListResponse* response) {
    const HealthCheckResponse status = Response(serving());
    for (const std::string& name : services_) (*response->mutable_statuses())[name] = status;
    return OkStatus();
  };
  const auto watch = [this](Call* call) { return std::make_unique<Watch>(this, call); };
  return {{PathOf(kHealthService, "Check"), MessageMethod(check)},
          {PathOf(kHealthService, "List"), MessageMethod(list)},
          {PathOf(kHealthService, "Watch"), {{}, watch}}};
}

bool HealthService::Knows(const std::string& service) const {
  return std::find(services_.begin(), services_.end(), service) != services_.end();
}

bool HealthService::serving() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return serving_;
}

void HealthService::SetServing(bool serving) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (serving == serving_) return;
  serving_ = serving;
  for (Watch* watch : watches_) watch->Send(Response(serving));
}

namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1alpha::ExtensionNumberResponse;
using grpc::reflection::v1alpha::ExtensionRequest;
using grpc::reflection::v1alpha::FileDescriptorResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void AddFile(const FileDescriptor& file, std::unordered_set<const FileDescriptor*>* added,
             FileDescriptorResponse* response) {
  if (!added->insert(&file).second) return;
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(response->add_file_descriptor_proto());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
}

// Adds the file and its dependencies; NOT_FOUND, with `missing`, if there is no file.
Status Describe(const FileDescriptor* file, const char* missing,
                ServerReflectionResponse* response) {
  if (file == nullptr) return NotFound(missing);
  std::unordered_set<const FileDescriptor*> added;
  AddFile(*file, &added, response->mutable_file_descriptor_response());
  return OkStatus();
}

Status DescribeExtension(const ExtensionRequest& request, ServerReflectionResponse* response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(request.containing_type());
  if (type == nullptr) return NotFound("Type not found.");
  const FieldDescriptor* const field =
      Pool().FindExtensionByNumber(type, request.extension_number());
  return Describe(field == nullptr ? nullptr : field->file(), "Extension not found.", response);
}

Status ListExtensions(const std::string& type_name, ServerReflectionResponse* response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(type_name);
  if (type == nullptr) return NotFound("Type not found.");
  ExtensionNumberResponse* const numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(type_name);
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  for (const FieldDescriptor* field : extensions) numbers->add_extension_number(field->number());
  return OkStatus();
}

Status Answer(const std::vector<std::string>& services, const ServerReflectionRequest& request,
              ServerReflectionResponse* response) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response->mutable_list_services_response()->add_service()->set_name(name);
      }
      return OkStatus();
    case ServerReflectionRequest::kFileByFilename:
      return Describe(Pool().FindFileByName(request.file_by_filename()), "File not found.",
                      response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return Describe(Pool().FindFileContainingSymbol(request.file_containing_symbol()),
                      "Symbol not found.", response);
    case ServerReflectionRequest::kFileContainingExtension:
      return DescribeExtension(request.file_containing_extension(), response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return ListExtensions(request.all_extension_numbers_of_type(), response);
    default:
      return Error(StatusCode::kUnimplemented, "This kind of request is not supported.");
  }
}

// Answers the client's requests in order. A failed lookup is an answer, too, and does not end the
// call.
class Reflection final : public http2::StreamHandler {
 public:
  Reflection(const std::vector<std::string>& services, Call* call)
      : services_(services), call_(call) {}

  void Received(const Message& message) override {
    ServerReflectionRequest request;
    if (Status status = ReadMessage(message, &request); !status.ok()) {
      return call_->Finish(status);
    }
    ServerReflectionResponse response;
    if (Status status = Answer(services_, request, &response); !status.ok()) {
      response.mutable_error_response()->set_error_code(static_cast<int>(status.code));
      response.mutable_error_response()->set_error_message(status.message);
    }
    response.set_valid_host(request.host());
    *response.mutable_original_request() = std::move(request);
    Message bytes;
    if (Status status = WriteMessage(response, &bytes); !status.ok()) return call_->Finish(status);
    call_->Send(std::move(bytes));
  }

  void Closed() override { call_->Finish(OkStatus()); }
  bool Sent() override { return true; }

 private:
  const std::vector<std::string>& services_;
  Call* const call_;
};

}  // namespace

Method ReflectionMethod(std::vector<std::string> services) {
  return {{}, [services = std::move(services)](Call* call) {
            return std::make_unique<Reflection>(services, call);
          }};
}

}  // namespace colcast::rpc
