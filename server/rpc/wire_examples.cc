#include "server/rpc/wire_examples.h"

#include <memory>
#include <string>
#include <utility>

#include "server/api/examples_call.h"
#include "server/inference/example_run.h"
#include "server/rpc/grpc_exchange.h"
#include "server/rpc/messages.h"
#include "server/wire/example_request.h"
#include "tensorflow_serving/apis/classification.pb.h"
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

class WireExamples final : public api::ExamplesCodec {
 public:
  WireExamples(const ExamplesMessages& messages, http2::Call* call)
      : messages_(messages), exchange_(call) {}

  const char* api() const override { return messages_.api; }
  api::Exchange& exchange() override { return exchange_; }
  GrpcBody* body() { return &body_; }
  const MultiInferenceRequest& tasks() const override { return tasks_; }
  const ExampleInput& input() const override { return request_.input; }

  Status Read(api::Call* call) override {
    if (is_read_) return OkStatus();
    exchange_.Prefetch();
    Status status =
        DecodeExampleRequest(exchange_.request().bytes(), messages_.schema, messages_.request,
                             call->backend().calls.max_request_rows, &request_);
    if (!status.ok()) return status;
    if (!messages_.parse(request_.rest, &tasks_)) {
      return Internal("the ", messages_.request, "'s checker and protobuf disagree");
    }
    status = call->FindServable(FromProto(inference::ModelSpecOf(tasks_)));
    is_read_ = status.ok();
    return status;
  }

  Status Write(const MultiInferenceResponse& response) override {
    return messages_.write(response, exchange_.response());
  }

  bool messages(Bytes* request, Bytes* response) override {
    *request = exchange_.request().bytes();
    *response = exchange_.response()->bytes();
    return true;
  }

 private:
  const ExamplesMessages& messages_;
  GrpcExchange exchange_;
  GrpcBody body_{&exchange_, this};
  ExampleRequest request_;
  MultiInferenceRequest tasks_;
  bool is_read_ = false;
};

}  // namespace

const ExamplesMessages kExamplesMessages[3] = {
    {"Classify", "ClassificationRequest", kExampleRequest,
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return ParseOneTask<ClassificationRequest>(rest, inference::kClassifyMethodName, tasks);
     },
     WriteClassification},
    {"Regress", "RegressionRequest", kExampleRequest,
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return ParseOneTask<RegressionRequest>(rest, inference::kRegressMethodName, tasks);
     },
     WriteRegression},
    {"MultiInference", "MultiInferenceRequest", kMultiInferenceRequest,
     [](const std::string& rest, MultiInferenceRequest* tasks) {
       return tasks->ParseFromString(rest);
     },
     [](const MultiInferenceResponse& response, http2::Message* message) {
       return WriteMessage(response, message);
     }},
};

void SubmitExamples(const ExamplesMessages& messages, http2::Call* call, const Backend& backend) {
  Submit<api::ExamplesCall>(std::make_unique<WireExamples>(messages, call), backend);
}

}  // namespace colcast::rpc
