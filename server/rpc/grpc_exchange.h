// A unary gRPC call in the form that calls need (server/api).
#ifndef COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_
#define COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_

#include <string>

#include "server/api/exchange.h"
#include "server/http2/call.h"

namespace colcast::rpc {

class GrpcExchange final : public api::Exchange {
 public:
  explicit GrpcExchange(http2::Call* call) : call_(call) {}

  const char* entrypoint() const override { return "GRPC"; }
  scheduling::Clock::time_point deadline() const override { return call_->deadline(); }
  bool cancelled() const override { return call_->cancelled(); }
  uint64_t client() const override { return call_->connection(); }
  std::string traceparent() override { return call_->Metadata("traceparent").value_or(""); }
  std::string caller(const callers::NameSource& names) override;
  size_t request_bytes() const override { return request().size(); }
  size_t Settle(const metrics::CallRecord& record, Status* status) override;
  void Send(const Status& status) override { call_->Finish(status); }

  // Called before the request is read. RESOURCE_EXHAUSTED if the client has too many unread
  // answers.
  Status Prepare();
  // See http2::Call.
  Status InflateRequest(size_t max_bytes) { return call_->InflateRequest(max_bytes); }
  Status CountResponse(size_t bytes) { return call_->CountResponse(bytes); }

  const http2::Message& request() const { return call_->request(); }
  http2::Message* response() { return call_->response(); }

 private:
  http2::Call* const call_;  // destroyed by Send()
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_
