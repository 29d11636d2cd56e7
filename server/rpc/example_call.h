// One call of Classify, Regress or MultiInference, from the bytes gRPC received to those it sends.
#ifndef COLCAST_SERVER_RPC_EXAMPLE_CALL_H_
#define COLCAST_SERVER_RPC_EXAMPLE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/backend.h"
#include "server/inference/call.h"
#include "server/inference/multi_inference.h"
#include "server/metrics/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/model_spec.h"
#include "server/rpc/received_bytes.h"
#include "server/rpc/status.h"
#include "server/scheduling/drop_status.h"
#include "server/scheduling/worker_pool.h"
#include "server/wire/example_request.h"

namespace colcast::rpc {

template <typename Request>
const tensorflow::serving::ModelSpec& ModelSpecOf(const Request& request) {
  return request.model_spec();
}

inline const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request) {
  return inference::ModelSpecOf(request);
}

// Owns itself, as PredictCall does. The message is read by the worker, not by gRPC's threads, and
// its tf.Examples by nobody but the model: parsing them takes longer than many a model to run.
template <typename Request, typename Response>
class ExampleCall final : public grpc::ServerUnaryReactor, public scheduling::Job {
 public:
  using Infer = Status (*)(const inference::Servable&, const Request&, const ExampleInput&,
                           const inference::CallOptions&, Response*, inference::CallStats*);

  // `api`, for the metrics, is a literal; `schema` is the request's. The pointers are gRPC's and
  // live until OnDone.
  ExampleCall(const char* api, const MessageSchema& schema, Infer infer,
              grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
              grpc::ByteBuffer* response, const Backend& backend)
      : schema_(schema),
        infer_(infer),
        context_(context),
        request_(request),
        response_(response),
        backend_(backend),
        received_(scheduling::Clock::now()),
        deadline_(ToSteady(context->deadline())) {
    record_.api = api;
    record_.entrypoint = "GRPC";
    record_.request_bytes = request->Length();
  }

  scheduling::Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return context_->IsCancelled(); }

  void Run(scheduling::Clock::duration waited) override {
    record_.queue_wait = waited;
    Answer(Respond());
  }

  void Drop(scheduling::DropReason reason) override { Answer(scheduling::DropStatus(reason)); }

 private:
  void OnDone() override { delete this; }

  Status Respond() {
    ReceivedBytes received;
    if (Status status = received.Read(*request_); !status.ok()) return status;
    const std::string& name = Request::descriptor()->name();
    ExampleRequest parts;
    if (Status status = DecodeExampleRequest(received.bytes(), schema_, name.c_str(),
                                             backend_.calls.max_request_rows, &parts);
        !status.ok()) {
      return status;
    }
    Request request;
    if (!request.ParseFromString(parts.rest)) {
      return Internal("the ", name, "'s checker and protobuf disagree");
    }
    const tensorflow::serving::ModelSpec& spec = ModelSpecOf(request);
    if (Status status = backend_.models->Find(FromProto(spec), &servable_); !status.ok()) {
      return status;
    }
    record_.model_name = servable_->name();
    record_.signature_name = servable_->SignatureLabel(spec.signature_name());
    Response response;
    inference::CallStats stats;
    const Status status =
        infer_(*servable_, request, parts.input, backend_.calls, &response, &stats);
    record_.runtime = stats.runtime;
    record_.expansion = stats.expansion;
    return status.ok() ? Write(response) : status;
  }

  Status Write(const Response& response) {
    bool own_buffer = false;
    const grpc::Status written =
        grpc::SerializationTraits<Response>::Serialize(response, response_, &own_buffer);
    if (written.ok()) return OkStatus();
    return Internal("the ", Response::descriptor()->name(),
                    " can not be sent: ", written.error_message());
  }

  void Answer(const Status& status) {
    record_.code = status.code;
    record_.latency = scheduling::Clock::now() - received_;
    record_.response_bytes = response_->Length();
    backend_.metrics->Record(record_);
    Finish(ToGrpc(status));
  }

  const MessageSchema& schema_;
  const Infer infer_;
  grpc::CallbackServerContext* const context_;
  const grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  const Backend& backend_;
  const scheduling::Clock::time_point received_;
  const scheduling::Clock::time_point deadline_;
  std::shared_ptr<const inference::Servable> servable_;  // the record's names are its
  metrics::RequestRecord record_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_EXAMPLE_CALL_H_
