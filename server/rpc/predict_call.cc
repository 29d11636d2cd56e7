#include "server/rpc/predict_call.h"

#include <memory>
#include <utility>

#include "server/base/out_of_memory.h"
#include "server/inference/signature.h"
#include "server/predict_record.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// Larger messages are not decoded before a worker takes them.
constexpr size_t kMaxDescribedBytes = 4 << 20;

// As many as a thread keeps for later.
constexpr size_t kMaxSpare = 64;

// gRPC ends the process if it finds no memory for a slice.
grpc::Slice MakeSlice(size_t size) {
  constexpr size_t kMayBeMissing = 1 << 20;
  if (size < kMayBeMissing) return grpc::Slice(size);
  return grpc::Slice(operator new(size), size, [](void* memory) { operator delete(memory); });
}

// Throws std::bad_alloc if there is no memory for a large answer.
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
  grpc::Slice slice = MakeSlice(PredictResponseSize(response));
  WritePredictResponse(response, const_cast<uint8_t*>(slice.begin()));
  grpc::ByteBuffer(&slice, 1).Swap(buffer);
  return OkStatus();
}

}  // namespace

// What a request is read into. A thread keeps those it is done with, so that decoding does not
// allocate.
struct PredictCall::Scratch {
  ReceivedBytes received;
  DecodedRequest request;
};

std::vector<std::unique_ptr<PredictCall::Scratch>>& PredictCall::Spare() {
  thread_local std::vector<std::unique_ptr<Scratch>> spare;
  return spare;
}

PredictCall::PredictCall(UnaryCall* call, const Backend& backend)
    : WorkerCall("Predict", call, backend) {}

PredictCall::~PredictCall() {
  if (scratch_ == nullptr) return;
  scratch_->received.Release();
  if (Spare().size() < kMaxSpare) Spare().push_back(std::move(scratch_));
}

void PredictCall::Describe(scheduling::JobProfile* profile) {
  if (WorkerCall::request().Length() > kMaxDescribedBytes) return;
  thread_local Scratch scratch;
  const Status status = WithinMemory([&] {
    Status read = scratch.received.Read(WorkerCall::request());
    if (read.ok()) {
      read = DecodePredictRequest(scratch.received.bytes(), &scratch.request,
                                  backend().max_request_columns);
    }
    if (read.ok()) read = FindServable(scratch.request.model_spec());
    if (read.ok()) inference::DescribePredict(scratch.request, servable(), profile);
    return read;
  });
  if (!status.ok()) *profile = {};
  scratch.received.Release();
}

void PredictCall::Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) {
  inference::RunPredict(this, waited, *companions, backend().workers);
}

Status PredictCall::Read() {
  if (Status status = CheckClientReads(); !status.ok()) return status;
  if (Spare().empty()) {
    scratch_ = std::make_unique<Scratch>();
  } else {
    scratch_ = std::move(Spare().back());
    Spare().pop_back();
  }
  if (Status status = scratch_->received.Read(WorkerCall::request()); !status.ok()) return status;
  if (Status status = DecodePredictRequest(scratch_->received.bytes(), &scratch_->request,
                                           backend().max_request_columns);
      !status.ok()) {
    return status;
  }
  const ModelSpec& spec = scratch_->request.model_spec();
  if (!has_servable()) {
    if (Status status = FindServable(spec); !status.ok()) return status;
  }
  return inference::CheckMethodName(servable(), spec.signature_name, backend().calls);
}

const DecodedRequest& PredictCall::request() const { return scratch_->request; }

void PredictCall::Finish(const Status& status, const engine::Outputs* outputs,
                         const inference::PredictStats& stats) {
  EnterStats(stats, record());
  if (!status.ok()) {
    Answer(status);
    return;
  }
  record()->expansion = outputs->expansion();
  Answer(WithinMemory([&] {
    return WriteResponse(request().model_spec(), servable().version(), *outputs, backend().encoding,
                         response());
  }));
}

}  // namespace colcast::rpc
