#include "server/rpc/grpc_exchange.h"

#include <algorithm>
#include <vector>

#include "server/http2/connection.h"

namespace colcast::rpc {

uint64_t GrpcExchange::client() const { return call_->connection().number(); }

std::string GrpcExchange::caller(const callers::NameSource& names) {
  if (names.certificate) return call_->connection().certificate_name();
  return names.header.empty() ? "" : call_->Metadata(names.header).value_or("");
}

// Another core may have received the bytes, so prefetching all of them is faster than fetching one
// after the other.
void Prefetch(const http2::Message& request) {
  constexpr size_t kCacheLine = 64;
  constexpr size_t kMaxPrefetch = 128 << 10;  // well within a second-level cache
  size_t remaining = kMaxPrefetch;
  for (const Slice& slice : request.slices()) {
    const size_t size = std::min(slice.size, remaining);
    for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(slice.data + at);
    remaining -= size;
  }
}

void GrpcExchange::Settle(metrics::CallRecord* record, Status* status) {
  if (record->unknown_keys > 0) {
    call_->AddTrailer("x-colcast-unknown-keys", std::to_string(record->unknown_keys));
  }
  http2::Message& response = *call_->response();
  if (status->ok()) *status = call_->CountResponse(response.size());
  if (!status->ok()) response.Clear();
  record->request_bytes = call_->request().size();
  record->response_bytes = response.size();
}

}  // namespace colcast::rpc
