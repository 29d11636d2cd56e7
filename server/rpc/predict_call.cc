#include "server/rpc/predict_call.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/inference/predict.h"
#include "server/rpc/call.h"
#include "server/rpc/received_bytes.h"
#include "server/rpc/status.h"
#include "server/scheduling/drop_status.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// What a worker thread keeps from one request to the next, so that decoding does not allocate.
struct Scratch {
  ReceivedBytes received;
  PredictRequest request;
};

Status WriteResponse(const ModelSpec& spec, int64_t version, const engine::Outputs& outputs,
                     TensorEncoding encoding, grpc::ByteBuffer* buffer) {
  PredictResponse response;
  response.model_name = spec.name;
  response.signature_name =
      spec.signature_name.empty() ? std::string_view("serving_default") : spec.signature_name;
  response.version = version;
  response.outputs = outputs.columns();
  response.encoding = encoding;
  if (Status status = CheckPredictResponse(response); !status.ok()) return status;
  grpc::Slice slice(PredictResponseSize(response));
  WritePredictResponse(response, const_cast<uint8_t*>(slice.begin()));
  grpc::ByteBuffer(&slice, 1).Swap(buffer);
  return OkStatus();
}

}  // namespace

PredictCall::PredictCall(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                         grpc::ByteBuffer* response, const Backend& backend)
    : context_(context),
      request_(request),
      response_(response),
      backend_(backend),
      received_(Clock::now()),
      deadline_(ToSteady(context->deadline())) {}

void PredictCall::Run(Clock::duration waited) {
  metrics::RequestRecord record;
  record.queue_wait = waited;
  std::shared_ptr<const inference::Servable> servable;
  Answer(Predict(&servable, &record), &record);
}

Status PredictCall::Predict(std::shared_ptr<const inference::Servable>* servable,
                            metrics::RequestRecord* record) {
  thread_local Scratch scratch;
  const std::unique_ptr<ReceivedBytes, void (*)(ReceivedBytes*)> release_at_end(
      &scratch.received, [](ReceivedBytes* received) { received->Release(); });
  if (Status status = scratch.received.Read(*request_); !status.ok()) return status;
  if (Status status = DecodePredictRequest(scratch.received.bytes(), &scratch.request,
                                           backend_.max_request_columns);
      !status.ok()) {
    return status;
  }
  const ModelSpec& spec = scratch.request.model_spec();
  if (Status status = backend_.models->Find(spec, servable); !status.ok()) return status;
  record->model_name = (*servable)->name();
  record->signature_name = (*servable)->SignatureLabel(spec.signature_name);
  if (Status status = inference::CheckMethodName(**servable, spec.signature_name, backend_.calls);
      !status.ok()) {
    return status;
  }
  std::unique_ptr<engine::Outputs> outputs;
  const Clock::time_point start = Clock::now();
  Status status = (*servable)->model().Predict(scratch.request, &outputs);
  record->runtime = Clock::now() - start;
  if (!status.ok()) return status;
  record->expansion = outputs->expansion();
  return WriteResponse(spec, (*servable)->version(), *outputs, backend_.encoding, response_);
}

void PredictCall::Answer(const Status& status, metrics::RequestRecord* record) {
  record->api = "Predict";
  record->entrypoint = "GRPC";
  record->code = status.code;
  record->latency = Clock::now() - received_;
  record->request_bytes = request_->Length();
  record->response_bytes = response_->Length();
  backend_.metrics->Record(*record);
  Finish(ToGrpc(status));
}

void PredictCall::Drop(scheduling::DropReason reason) {
  metrics::RequestRecord record;
  Answer(scheduling::DropStatus(reason), &record);
}

}  // namespace colcast::rpc
