#include "server/api/examples_call.h"

#include <utility>

#include "server/base/status.h"
#include "server/inference/example_run.h"
#include "server/inference/request_message.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::api {
namespace {

using tensorflow::serving::InferenceResult;
using tensorflow::serving::InferenceTask;

template <typename Request, typename Response, typename Result>
void Serialize(const InferenceTask& task, const ExampleInput& input, const InferenceResult& from,
               const Result& result, std::string made[2]) {
  Request request;
  *request.mutable_model_spec() = task.model_spec();
  *request.mutable_input() = inference::ToInput(input);
  Response response;
  *response.mutable_model_spec() = from.model_spec();
  *response.mutable_result() = result;
  made[0] = request.SerializeAsString();
  made[1] = response.SerializeAsString();
}

}  // namespace

void ExamplesCall::Run(scheduling::Clock::duration waited, std::vector<scheduling::Taken>*) {
  call_record().queue_wait = waited;
  inference::RunGate gate(backend().workers);
  Status status = WithinMemory([&] { return RunModel(&gate); });
  if (gate.must_wait()) return gate.Wait(this, waited);
  Answer(std::move(status));
}

Status ExamplesCall::RunModel(inference::RunGate* gate) {
  if (Status status = ReadRequest(); !status.ok()) return status;
  inference::CallOptions options = backend().calls;
  options.gate = gate;
  response_.Clear();
  Status status = inference::RunExamples(found(), codec_->tasks(), codec_->input(), options,
                                         &response_, &call_record());
  return status.ok() ? codec_->Write(response_) : status;
}

void ExamplesCall::GetMessages(Bytes* request, Bytes* response, std::string made[2]) {
  using namespace tensorflow::serving;
  if (codec_->messages(request, response)) return;
  const InferenceResult& result = response_.results(0);
  const InferenceTask& task = codec_->tasks().tasks(0);
  if (result.has_classification_result()) {
    Serialize<ClassificationRequest, ClassificationResponse>(task, codec_->input(), result,
                                                             result.classification_result(), made);
  } else {
    Serialize<RegressionRequest, RegressionResponse>(task, codec_->input(), result,
                                                     result.regression_result(), made);
  }
  *request = Bytes(made[0]);
  *response = Bytes(made[1]);
}

}  // namespace colcast::api
