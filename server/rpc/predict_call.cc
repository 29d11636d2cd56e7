#include "server/rpc/predict_call.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/rpc/status.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// gRPC counts deadlines on the wall clock, the queue on one that is never set.
Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline) {
  using std::chrono::system_clock;
  if (deadline == system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - system_clock::now());
}

// A request's bytes where gRPC received them.
class ReceivedBytes {
 public:
  Status Read(const grpc::ByteBuffer& buffer) {
    if (!buffer.Dump(&owners_).ok()) return Internal("the request's message can not be read");
    slices_.clear();
    for (const grpc::Slice& slice : owners_) slices_.push_back({slice.begin(), slice.size()});
    return OkStatus();
  }
  Bytes bytes() const { return Bytes(slices_.data(), slices_.size()); }
  void Release() { owners_.clear(); }

 private:
  std::vector<grpc::Slice> owners_;
  std::vector<Slice> slices_;
};

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
                         grpc::ByteBuffer* response, const models::ModelManager* models,
                         TensorEncoding encoding)
    : context_(context),
      request_(request),
      response_(response),
      models_(models),
      encoding_(encoding),
      deadline_(ToSteady(context->deadline())) {}

void PredictCall::Run(Clock::duration) { Finish(ToGrpc(Predict())); }

Status PredictCall::Predict() {
  thread_local Scratch scratch;
  const std::unique_ptr<ReceivedBytes, void (*)(ReceivedBytes*)> release_at_end(
      &scratch.received, [](ReceivedBytes* received) { received->Release(); });
  if (Status status = scratch.received.Read(*request_); !status.ok()) return status;
  if (Status status = DecodePredictRequest(scratch.received.bytes(), &scratch.request);
      !status.ok()) {
    return status;
  }
  const ModelSpec& spec = scratch.request.model_spec();
  std::shared_ptr<const models::ServedVersion> served;
  if (Status status = models_->Find(spec, &served); !status.ok()) return status;
  std::unique_ptr<engine::Outputs> outputs;
  if (Status status = served->model->Predict(scratch.request, &outputs); !status.ok()) {
    return status;
  }
  return WriteResponse(spec, served->version, *outputs, encoding_, response_);
}

void PredictCall::Drop(scheduling::DropReason reason) {
  switch (reason) {
    case scheduling::DropReason::kQueueFull:
      return Finish(ToGrpc(ResourceExhausted(
          "the server's queue is full (--max_queued_requests); try again or elsewhere")));
    case scheduling::DropReason::kDeadlineExceeded:
      return Finish(ToGrpc(DeadlineExceeded("the deadline passed while the request waited")));
    case scheduling::DropReason::kCancelled:
      return Finish(grpc::Status::CANCELLED);
    case scheduling::DropReason::kShutdown:
      return Finish(ToGrpc(Unavailable("the server is shutting down")));
  }
}

}  // namespace colcast::rpc
