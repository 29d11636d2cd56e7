// Compressed messages as bodies, which are read before their calls run.
#ifndef COLCAST_SERVER_RPC_GRPC_BODY_H_
#define COLCAST_SERVER_RPC_GRPC_BODY_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "server/api/body_job.h"
#include "server/api/codec.h"
#include "server/base/out_of_memory.h"
#include "server/rpc/grpc_exchange.h"

namespace colcast::rpc {

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

#endif  // COLCAST_SERVER_RPC_GRPC_BODY_H_
