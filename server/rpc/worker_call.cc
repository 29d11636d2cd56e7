#include "server/rpc/worker_call.h"

#include <chrono>

#include "server/scheduling/drop_status.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// gRPC counts deadlines on the wall clock, the queue on one that is never set.
Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline) {
  using std::chrono::system_clock;
  if (deadline == system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - system_clock::now());
}

}  // namespace

WorkerCall::WorkerCall(const char* api, UnaryCall* call, const Backend& backend)
    : call_(call),
      backend_(backend),
      received_(Clock::now()),
      deadline_(ToSteady(call->deadline())) {
  record_.api = api;
  record_.entrypoint = "GRPC";
  record_.request_bytes = request().Length();
}

void WorkerCall::Run(Clock::duration waited) {
  record_.queue_wait = waited;
  Status status = call_->CheckClientReads();
  if (status.ok()) status = Respond();
  if (status.ok()) status = call_->CountResponse();
  Answer(status);
}

void WorkerCall::Drop(scheduling::DropReason reason) { Answer(scheduling::DropStatus(reason)); }

Status WorkerCall::FindServable(const ModelSpec& spec) {
  if (Status status = backend_.models->Find(spec, &servable_); !status.ok()) return status;
  record_.model_name = servable_->name();
  record_.signature_name = servable_->SignatureLabel(spec.signature_name);
  return OkStatus();
}

void WorkerCall::Answer(const Status& status) {
  record_.code = status.code;
  record_.latency = Clock::now() - received_;
  record_.response_bytes = response()->Length();
  backend_.metrics->Record(record_);
  call_->Finish(status);
  delete this;
}

}  // namespace colcast::rpc
