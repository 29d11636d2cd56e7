// A unary gRPC call in the form that calls need (server/api).
#ifndef COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_
#define COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "server/api/body_job.h"
#include "server/api/codec.h"
#include "server/base/status.h"
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
  Status CheckClientReads(scheduling::Clock::time_point since) const override {
    return call_->CheckClientReads(since);
  }
  size_t Settle(const metrics::CallRecord& record, Status* status) override;
  void Send(const Status& status) override { call_->Finish(status); }

  // To be called before the request is read.
  void Prefetch() const;
  // See http2::Call.
  Status InflateRequest(size_t max_bytes) { return call_->InflateRequest(max_bytes); }
  Status CountResponse(size_t bytes) { return call_->CountResponse(bytes); }

  const http2::Message& request() const { return call_->request(); }
  http2::Message* response() { return call_->response(); }

 private:
  http2::Call* const call_;  // destroyed by Send()
};

// Compressed messages as bodies, which are read before their calls run.
class GrpcBody final : public api::Body {
 public:
  // Both must outlive this object.
  GrpcBody(GrpcExchange* exchange, api::Codec* codec) : exchange_(*exchange), codec_(*codec) {}

  size_t body_bytes() const override { return exchange_.request().size(); }
  bool is_compressed() const override {
    return exchange_.request().compression() != http2::Compression::kNone;
  }
  Status ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) override {
    Status status = exchange_.InflateRequest(max_bytes);
    *inflates_too_far = status.code == StatusCode::kResourceExhausted;
    return status.ok() ? WithinMemory([&] { return codec_.Read(call); }) : status;
  }

 private:
  GrpcExchange& exchange_;
  api::Codec& codec_;
};

template <typename ApiCall, typename Codec>
void Submit(std::unique_ptr<Codec> codec, const Backend& backend) {
  GrpcBody* const body = codec->body();
  auto* const call = new ApiCall(std::move(codec), backend);
  if (!body->is_compressed()) return call->Submit();
  api::ReadAndRun(backend.max_request_bytes, body, call);
}

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_
