#include "server/rpc/worker_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/rpc/inflate.h"

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

// gRPC counts deadlines on the wall clock, the queue on one that is never set.
Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline) {
  using std::chrono::system_clock;
  if (deadline == system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - system_clock::now());
}

}  // namespace

Status ReceivedBytes::Read(const grpc::ByteBuffer& buffer) {
  if (!buffer.Dump(&owners_).ok()) return Internal("the request's message cannot be read");
  slices_.clear();
  for (const grpc::Slice& slice : owners_) slices_.push_back({slice.begin(), slice.size()});
  Prefetch(slices_);
  return OkStatus();
}

WorkerCall::WorkerCall(const char* api, UnaryCall* call, const Backend& backend)
    : call_(call),
      backend_(backend),
      received_(Clock::now()),
      deadline_(ToSteady(call->deadline())) {
  record_.api = api;
  record_.entrypoint = "GRPC";
}

Status WorkerCall::Prepare() {
  if (Status status = call_->CheckClientReads(); !status.ok()) return status;
  if (CompressionOf(request()) == GRPC_COMPRESS_NONE) return OkStatus();
  grpc::ByteBuffer message = request();
  Status status = Inflate(backend_.max_request_bytes, &message);
  if (status.ok()) set_request(message);
  return status;
}

void WorkerCall::Drop(scheduling::DropReason reason) { Answer(scheduling::DropStatus(reason)); }

Status WorkerCall::FindServable(const ModelSpec& spec) {
  if (Status status = backend_.models->Find(spec, &servable_); !status.ok()) return status;
  record_.model_name = servable_->name();
  record_.signature_name = servable_->SignatureLabel(spec.signature_name);
  return OkStatus();
}

void WorkerCall::LogIfSampled() const {
  const auto log = backend_.request_logs->Sample(record_.model_name);
  if (log == nullptr) return;
  ReceivedBytes sent, answered;
  if (!sent.Read(request()).ok() || !answered.Read(*response()).ok()) return;
  backend_.request_logs->Add(log, {record_.api, record_.model_name, servable_->version(),
                                   record_.signature_name, sent.bytes(), answered.bytes()});
}

void WorkerCall::Answer(Status status) {
  if (status.ok()) status = CountResponse(response()->Length());
  if (!status.ok()) response()->Clear();
  if (status.ok()) LogIfSampled();
  record_.code = status.code;
  record_.request_bytes = request().Length();
  record_.latency = Clock::now() - received_;
  record_.response_bytes = response()->Length();
  backend_.metrics->Record(record_);
  call_->Finish(status);
  delete this;
}

}  // namespace colcast::rpc
