#include "server/api/call.h"

#include <algorithm>
#include <utility>

#include "server/base/status.h"

namespace colcast::api {

using scheduling::Clock;

Call::Call(Codec* codec, const Backend& backend)
    : codec_(*codec), exchange_(codec->exchange()), backend_(backend) {
  record_.api = codec->api();
  record_.entrypoint = exchange_.entrypoint();
  record_.received = Clock::now();
  if (backend.tracer != nullptr) trace_ = backend.tracer->Start(exchange_.traceparent());
  if (backend.callers != nullptr) {
    caller_.emplace(backend.callers, exchange_.caller(backend.callers->names()));
  }
}

uint64_t Call::client() const {
  const uint64_t caller = caller_ ? caller_->client() : 0;
  return caller != 0 ? caller : exchange_.client();
}

Status Call::FindServable(const ModelSpec& spec) {
  if (Status status = backend_.models->Find(spec, &servable_); !status.ok()) return status;
  record_.model_name = servable_->name();
  record_.model_version = servable_->version();
  SetSignature(spec.signature_name);
  return OkStatus();
}

Status Call::ReadRequest() {
  Status status = exchange_.CheckClientReads(record_.received);
  return status.ok() ? codec_.Read(this) : status;
}

void Call::SetSignature(const std::string& name) {
  record_.signature_name = servable_->SignatureLabel(name);
}

void Call::LogIfSampled() {
  const auto log = backend_.request_logs->Sample(record_.model_name);
  if (log == nullptr) return;
  static_cast<void>(WithinMemory([&] {
    Bytes request, response;
    std::string made[2];
    GetMessages(&request, &response, made);
    backend_.request_logs->Add(log, {record_.api, record_.model_name, record_.model_version,
                                     record_.signature_name, request, response});
    return OkStatus();
  }));
}

void Call::Answer(Status status) {
  exchange_.Settle(&record_, &status);
  if (status.ok()) LogIfSampled();
  record_.code = status.code;
  record_.latency = Clock::now() - record_.received;
  backend_.metrics->Record(record_);
  if (caller_) {
    caller_->Count(status.ok() ? record_.expansion.rows : 0,
                   record_.runtime / std::max(1, record_.requests_in_run));
  }
  if (trace_ != nullptr) backend_.tracer->Finish(*trace_, record_);
  exchange_.Send(status);
  delete this;
}

}  // namespace colcast::api
