// Adapts a unary gRPC call to server/api.
#ifndef COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_
#define COLCAST_SERVER_RPC_GRPC_EXCHANGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/api/body_job.h"
#include "server/api/codec.h"
#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/http2/connection.h"

namespace colcast::rpc {

class GrpcExchange final : public api::Exchange {
 public:
  explicit GrpcExchange(http2::Call* call) : call_(call) {}

  const char* entrypoint() const override { return "GRPC"; }
  scheduling::Clock::time_point deadline() const override { return call_->deadline(); }
  bool cancelled() const override { return call_->cancelled(); }
  uint64_t client() const override { return call_->connection().number(); }
  std::string traceparent() override { return call_->Metadata("traceparent").value_or(""); }
  std::string caller(const callers::NameSource& names) override {
    if (names.certificate) return call_->connection().certificate_name();
    return names.header.empty() ? "" : call_->Metadata(names.header).value_or("");
  }
  Status CheckClientReads(scheduling::Clock::time_point since) const override {
    return call_->CheckClientReads(since);
  }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (record->unknown_keys > 0) {
      call_->AddTrailer("x-colcast-unknown-keys", std::to_string(record->unknown_keys));
    }
    http2::Message& response = *call_->response();
    if (status->ok()) *status = call_->CountResponse(response.size());
    if (!status->ok()) response.Clear();
    record->request_bytes = call_->request().size();
    record->response_bytes = response.size();
  }
  void Send(const Status& status) override { call_->Finish(status); }

 private:
  http2::Call* const call_;  // destroyed by Send()
};

// Call before reading a request. Another core may have received the bytes, so prefetching all of
// them is faster than fetching one after the other.
inline void Prefetch(const http2::Message& request) {
  constexpr size_t kCacheLine = 64;
  constexpr size_t kMaxPrefetch = 128 << 10;  // well within a second-level cache
  size_t remaining = kMaxPrefetch;
  for (const Slice& slice : request.slices()) {
    const size_t size = std::min(slice.size, remaining);
    for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(slice.data + at);
    remaining -= size;
  }
}

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
