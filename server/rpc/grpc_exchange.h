// Adapts a unary gRPC call to server/api.
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
  uint64_t client() const override;
  std::string traceparent() override { return call_->Metadata("traceparent").value_or(""); }
  std::string caller(const callers::NameSource& names) override;
  Status CheckClientReads(scheduling::Clock::time_point since) const override {
    return call_->CheckClientReads(since);
  }
  void Settle(metrics::CallRecord* record, Status* status) override;
  void Send(const Status& status) override { call_->Finish(status); }

 private:
  http2::Call* const call_;  // destroyed by Send()
};

// To be called before a request is read.
void Prefetch(const http2::Message& request);

// A call's compressed message, which is read before the call runs.
class GrpcBody final : public api::Body {
 public:
  // Both must outlive this object.
  GrpcBody(http2::Call* call, api::Codec* codec) : call_(*call), codec_(*codec) {}

  size_t body_bytes() const override { return call_.request().size(); }
  bool is_compressed() const override {
    return call_.request().compression() != http2::Compression::kNone;
  }
  Status ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) override {
    Status status = call_.InflateRequest(max_bytes);
    *inflates_too_far = status.code == StatusCode::kResourceExhausted;
    return status.ok() ? WithinMemory([&] { return codec_.Read(call); }) : status;
  }

 private:
  http2::Call& call_;
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
