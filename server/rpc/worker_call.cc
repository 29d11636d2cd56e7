#include "server/rpc/worker_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/caller_record.h"
#include "server/http2/inflate.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// Another core has received the bytes: all on their way at once, they are here sooner than one
// after the other.
void Prefetch(const std::vector<Slice>& slices) {
  constexpr size_t kCacheLine = 64;
  constexpr size_t kMaxPrefetch = 128 << 10;  // well within a second-level cache
  size_t left = kMaxPrefetch;
  for (const Slice& slice : slices) {
    const size_t size = std::min(slice.size, left);
    for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(slice.data + at);
    left -= size;
  }
}

std::string CallerOf(const Call& call, const callers::NameSource& names) {
  if (names.certificate) return call.certificate_name();
  return names.header.empty() ? "" : call.Metadata(names.header).value_or("");
}

}  // namespace

WorkerCall::WorkerCall(const char* api, Call* call, const Backend& backend)
    : call_(call), backend_(backend), received_(Clock::now()), deadline_(call->deadline()) {
  record_.api = api;
  record_.entrypoint = "GRPC";
  if (backend.tracer != nullptr) {
    trace_ = backend.tracer->Start(call->Metadata("traceparent").value_or(""));
  }
  if (backend.callers != nullptr) {
    caller_.emplace(backend.callers, CallerOf(*call, backend.callers->names()));
  }
}

uint64_t WorkerCall::client() const {
  const uint64_t caller = caller_ ? caller_->client() : 0;
  return caller != 0 ? caller : call_->connection();
}

Status WorkerCall::Prepare() {
  if (Status status = call_->CheckClientReads(); !status.ok()) return status;
  Prefetch(request().slices());
  if (request().compression() == http2::Compression::kNone) return OkStatus();
  Message message = request();
  Status status = http2::Inflate(backend_.max_request_bytes, &message);
  if (status.ok()) set_request(message);
  return status;
}

void WorkerCall::Drop(scheduling::DropReason reason) { Answer(scheduling::DropStatus(reason)); }

Status WorkerCall::FindServable(const ModelSpec& spec) {
  if (Status status = backend_.models->Find(spec, &servable_); !status.ok()) return status;
  record_.model_name = servable_->name();
  record_.model_version = servable_->version();
  record_.signature_name = servable_->SignatureLabel(spec.signature_name);
  return OkStatus();
}

void WorkerCall::LogIfSampled() const {
  const auto log = backend_.request_logs->Sample(record_.model_name);
  if (log != nullptr) Log(log);
}

void WorkerCall::Log(const std::shared_ptr<request_log::RequestLogs::Model>& log) const {
  AddToLog(log, request().bytes(), call_->response()->bytes());
}

void WorkerCall::AddToLog(const std::shared_ptr<request_log::RequestLogs::Model>& log,
                          const Bytes& request, const Bytes& response) const {
  backend_.request_logs->Add(log, {record_.api, record_.model_name, servable_->version(),
                                   record_.signature_name, request, response});
}

void WorkerCall::Answer(Status status) {
  if (status.ok()) status = CountResponse(response()->size());
  if (!status.ok()) response()->Clear();
  if (status.ok()) LogIfSampled();
  record_.code = status.code;
  record_.request_bytes = request().size();
  record_.latency = Clock::now() - received_;
  record_.response_bytes = response()->size();
  backend_.metrics->Record(record_);
  if (caller_) CountFor(record_, &*caller_);
  if (trace_ != nullptr) backend_.tracer->Finish(*trace_, record_, received_);
  call_->Finish(status);
  delete this;
}

}  // namespace colcast::rpc
