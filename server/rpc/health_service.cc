#include "server/rpc/health_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "grpc_health/v1/health.pb.h"
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

// A client that watches a service. By the protocol an unknown service is not an error: the client
// gets SERVICE_UNKNOWN and keeps watching.
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
      return call_->End(status);
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

  void Closed() override { call_->End(InvalidArgument("Watch needs a HealthCheckRequest")); }

  void Send(const HealthCheckResponse& response) {
    Message bytes;
    if (Status status = WriteMessage(response, &bytes); !status.ok()) return call_->End(status);
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
  Method watch;
  watch.open = [this](Call* call) { return std::make_unique<Watch>(this, call); };
  return {
      {PathOf(kHealthService, "Check"),
       MessageMethod<HealthCheckRequest, HealthCheckResponse>(check)},
      {PathOf(kHealthService, "List"), MessageMethod<HealthListRequest, HealthListResponse>(list)},
      {PathOf(kHealthService, "Watch"), std::move(watch)}};
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

}  // namespace colcast::rpc
