#include "server/rpc/wire_calls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/api/call.h"
#include "server/base/status.h"
#include "server/http2/connection.h"
#include "server/inference/example_run.h"
#include "server/inference/run.h"
#include "server/inference/servable.h"
#include "server/rpc/messages.h"
#include "server/rpc/services.h"
#include "server/wire/bytes.h"
#include "server/wire/example_request.h"
#include "server/wire/infer.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::rpc {

namespace {

using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::InferenceResult;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

// The messages of Classify, Regress or MultiInference.
struct ExamplesMessages {
  const char* api;      // the method, and the name for the metrics
  const char* request;  // the message's name, for errors
  // Parses the request without its examples. Returns false if protobuf cannot parse it.
  bool (*parse)(const std::string& rest, MultiInferenceRequest* tasks);
  Status (*write)(const MultiInferenceResponse& response, http2::Message* message);
};

// How a protocol represents Predict's request and answer.
struct PredictMessages {
  const char* service;
  const char* api;  // the method, and the name for the metrics
  Status (*decode)(const Bytes& message, DecodedRequest* request, size_t max_columns);
  Status (*write)(const PredictResponse& response, const MakeBuffer& make);
};

template <typename Request>
bool ParseOneTask(const std::string& rest, const char* method_name, MultiInferenceRequest* tasks) {
  Request request;
  if (!request.ParseFromString(rest)) return false;
  *tasks = inference::OneTask(request.model_spec(), method_name);
  return true;
}

Status WriteClassification(const MultiInferenceResponse& all, http2::Message* message) {
  ClassificationResponse response;
  *response.mutable_model_spec() = all.results(0).model_spec();
  *response.mutable_result() = all.results(0).classification_result();
  return WriteMessage(response, message);
}

Status WriteRegression(const MultiInferenceResponse& all, http2::Message* message) {
  RegressionResponse response;
  *response.mutable_model_spec() = all.results(0).model_spec();
  *response.mutable_result() = all.results(0).regression_result();
  return WriteMessage(response, message);
}

// Call before reading a request. Another core may have received the bytes, so prefetching all of
// them is faster than fetching them line by line.
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

api::Origin OriginOf(const http2::Call& call, const char* api, const Backend& backend) {
  api::Origin origin;
  origin.api = api;
  origin.entrypoint = "GRPC";
  origin.deadline = call.deadline();
  const std::string caller =
      backend.caller_header.empty() ? "" : call.Metadata(backend.caller_header).value_or("");
  origin.client = scheduling::ClientOf(caller);
  if (origin.client == 0) origin.client = call.connection().number();
  if (backend.tracer != nullptr) origin.traceparent = call.Metadata("traceparent").value_or("");
  return origin;
}

// The base class of this file's codecs. `messages.api` is the API's name.
template <typename Codec, typename Messages>
class WireCodec : public Codec {
 public:
  WireCodec(const Messages& messages, http2::Call* call, const Backend& backend)
      : Codec(OriginOf(*call, messages.api, backend)), messages_(messages), call_(call) {}

  bool cancelled() const override { return call_->cancelled(); }
  Status CheckClientReads(scheduling::Clock::time_point since) const override {
    return call_->CheckClientReads(since);
  }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (record->unknown_keys > 0) {
      call_->AddTrailer("x-colcast-unknown-keys", std::to_string(record->unknown_keys));
    }
    http2::Message& response = *call_->response();
    if (status->ok()) *status = call_->CountResponse(response.size());
    if (!status->ok()) response.Clear();
    record->request_bytes = call_->request().size();
    record->response_bytes = response.size();
  }
  void Send(const Status& status) override { call_->Finish(status); }

  size_t body_bytes() const override { return call_->request().size(); }
  bool is_compressed() const override {
    return call_->request().compression() != http2::Compression::kNone;
  }
  Status ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) override {
    Status status = call_->InflateRequest(max_bytes);
    *inflates_too_far = status.code == StatusCode::kResourceExhausted;
    return status.ok() ? WithinMemory([&] { return this->Read(call); }) : status;
  }

  bool messages(Bytes* request, Bytes* response) override {
    *request = call_->request().bytes();
    *response = call_->response()->bytes();
    return true;
  }

 protected:
  // Finds the servable and the signature that `spec` names.
  static Status FindModel(const ModelSpec& spec, api::Call* call) {
    if (call->has_servable()) return OkStatus();
    Status status = call->FindServable(spec);
    if (status.ok()) call->FindSignature(spec.signature_name);
    return status;
  }

  const Messages& messages_;
  http2::Call* const call_;  // destroyed by Send()
};

template <typename ApiCall, typename Codec, typename Messages>
void Submit(const Messages& messages, http2::Call* received, const Backend& backend) {
  auto* const call = new ApiCall(std::make_unique<Codec>(messages, received, backend), backend);
  if (!call->codec().is_compressed()) return call->Submit();
  api::ReadAndRun(backend.max_request_bytes, call);
}

class WireExamples final : public WireCodec<api::ExamplesCodec, ExamplesMessages> {
 public:
  using WireCodec::WireCodec;

  const MultiInferenceRequest& tasks() const override { return tasks_; }
  const ExampleInput& input() const override { return request_.input; }

  Status Read(api::Call* call) override {
    if (call->has_servable()) return OkStatus();
    Prefetch(call_->request());
    Status status = DecodeExampleRequest(call_->request().bytes(), messages_.request,
                                         call->backend().calls.max_request_rows, &request_);
    if (!status.ok()) return status;
    if (!messages_.parse(request_.rest, &tasks_)) {
      return InvalidArgument("malformed ", messages_.request,
                             ": protobuf cannot parse the fields other than input");
    }
    return FindModel(FromProto(inference::ModelSpecOf(tasks_)), call);
  }

  Status Write(const MultiInferenceResponse& response) override {
    return messages_.write(response, call_->response());
  }

 private:
  ExampleRequest request_;
  MultiInferenceRequest tasks_;
};

constexpr ExamplesMessages kExamplesMessages[] = {
    {"Classify", "ClassificationRequest",
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return ParseOneTask<ClassificationRequest>(rest, inference::kClassifyMethodName, tasks);
     },
     WriteClassification},
    {"Regress", "RegressionRequest",
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return ParseOneTask<RegressionRequest>(rest, inference::kRegressMethodName, tasks);
     },
     WriteRegression},
    {"MultiInference", "MultiInferenceRequest",
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return tasks->ParseFromString(rest);
     },
     [](const MultiInferenceResponse& response, http2::Message* message) {
       return WriteMessage(response, message);
     }},
};

constexpr char kPredict[] = "Predict";  // the API whose messages are logged unchanged

// Larger messages are not decoded until a worker dequeues them.
constexpr size_t kMaxDescribedBytes = 4 << 20;

SpareRequests& Spares() {
  static SpareRequests* const spares = new SpareRequests;
  return *spares;
}

class WirePredict final : public WireCodec<api::PredictCodec, PredictMessages> {
 public:
  using WireCodec::WireCodec;
  ~WirePredict() override { GiveBack(); }

  DecodedRequest& request() override { return decoded_->request; }

  // Decodes the request before it waits, to find its rows, signature and outputs; this takes a few
  // microseconds. Leaves the profile empty for a malformed request, whose error the worker reports,
  // and for one so large that decoding may take milliseconds. A request whose decoded form is too
  // large to keep while it waits is decoded and planned again by the worker.
  void Describe(api::PredictCall* call, scheduling::JobProfile* profile) override {
    const size_t bytes = call_->request().size();
    const bool is_long = bytes > kMaxDescribedBytes;
    const bool is_read = decoded_ != nullptr;
    if (is_long && !is_read) return;
    const Status status = WithinMemory([&] {
      Status read = is_read ? OkStatus() : Decode(*call);
      if (read.ok()) read = FindModel(request().model_spec, call);
      if (read.ok()) inference::DescribePredict(call, profile);
      return read;
    });
    if (!status.ok()) *profile = {};
    if (status.ok() && (is_long || MayWaitDecoded(*call))) return;
    call->planned = {};
    GiveBack();
  }

  Status Read(api::Call* call) override {
    Prefetch(call_->request());
    if (decoded_ == nullptr) {
      if (Status status = Decode(*call); !status.ok()) return status;
    }
    if (Status status = FindModel(request().model_spec, call); !status.ok()) return status;
    return inference::CheckMethodName(call->found_signature(), call->backend().calls);
  }

  Status Write(const PredictResponse& response) override {
    return messages_.write(response, [this](size_t bytes, uint8_t** buffer) {
      if (Status status = call_->CountResponse(bytes); !status.ok()) return status;
      const std::shared_ptr<uint8_t[]> written(new uint8_t[bytes]);
      *buffer = written.get();
      call_->response()->Append(written, written.get(), bytes);
      return OkStatus();
    });
  }

  bool messages(Bytes* request, Bytes* response) override {
    return messages_.api == kPredict && WireCodec::messages(request, response);
  }

 private:
  // Large requests for a model with item tables are not kept decoded, because IsLight() does not
  // count the columns that the tables add.
  bool MayWaitDecoded(const api::Call& call) const {
    return decoded_->IsLight() && (decoded_->is_small() || call.found().items() == nullptr);
  }

  Status Decode(const api::Call& call) {
    const size_t bytes = call_->request().size();
    decoded_ = Spares().Take(bytes);
    return messages_.decode(call_->request().bytes(), &decoded_->request,
                            call.backend().max_request_columns);
  }

  void GiveBack() {
    if (decoded_ != nullptr) Spares().GiveBack(std::move(decoded_));
  }

  std::unique_ptr<SpareRequests::Spare> decoded_;  // null until the request is decoded
};

constexpr PredictMessages kPredictMessages[] = {
    {kPredictionService, kPredict, DecodePredictRequest, WritePredictResponse},
    {kInferenceService, "ModelInfer", DecodeInferRequest, WriteInferResponse}};

}  // namespace

http2::Methods ModelCalls(const Backend& backend) {
  Methods methods;
  for (const ExamplesMessages& messages : kExamplesMessages) {
    methods.emplace(PathOf(kPredictionService, messages.api), Method{[&](Call* call) {
                      Submit<api::ExamplesCall, WireExamples>(messages, call, backend);
                    }});
  }
  for (const PredictMessages& messages : kPredictMessages) {
    methods.emplace(PathOf(messages.service, messages.api), Method{[&](Call* call) {
                      Submit<api::PredictCall, WirePredict>(messages, call, backend);
                    }});
  }
  return methods;
}

}  // namespace colcast::rpc
