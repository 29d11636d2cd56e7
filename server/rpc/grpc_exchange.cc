#include "server/rpc/grpc_exchange.h"

#include <algorithm>
#include <vector>

namespace colcast::rpc {

std::string GrpcExchange::caller(const callers::NameSource& names) {
  if (names.certificate) return call_->certificate_name();
  return names.header.empty() ? "" : call_->Metadata(names.header).value_or("");
}

// Another core may have received the bytes, so prefetching all of them is faster than fetching one
// after the other.
void GrpcExchange::Prefetch() const {
  constexpr size_t kCacheLine = 64;
  constexpr size_t kMaxPrefetch = 128 << 10;  // well within a second-level cache
  size_t remaining = kMaxPrefetch;
  for (const Slice& slice : request().slices()) {
    const size_t size = std::min(slice.size, remaining);
    for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(slice.data + at);
    remaining -= size;
  }
}

size_t GrpcExchange::Settle(const metrics::CallRecord& record, Status* status) {
  if (record.unknown_keys > 0) {
    call_->AddTrailer("x-colcast-unknown-keys", std::to_string(record.unknown_keys));
  }
  if (status->ok()) *status = CountResponse(response()->size());
  if (!status->ok()) response()->Clear();
  return response()->size();
}

}  // namespace colcast::rpc
