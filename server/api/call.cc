#include "server/api/call.h"

#include <utility>

#include "server/base/status.h"
#include "server/inference/example_run.h"
#include "server/inference/servable.h"
#include "server/wire/column.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::api {

using scheduling::Clock;

Call::Call(Codec* codec, const Backend& backend) : codec_(*codec), backend_(backend) {
  const Origin& origin = codec->origin();
  record_.api = origin.api;
  record_.entrypoint = origin.entrypoint;
  record_.received = Clock::now();
  if (backend.tracer != nullptr) trace_ = backend.tracer->Start(origin.traceparent);
}

Status Call::FindServable(const ModelSpec& spec) {
  if (Status status = backend_.served->Find(spec, &servable_); !status.ok()) return status;
  record_.model_name = servable_->name();
  record_.model_version = servable_->version();
  record_.signature_name = inference::LabelOf(nullptr);
  return OkStatus();
}

Status Call::ReadRequest() {
  Status status = codec_.CheckClientReads(record_.received);
  return status.ok() ? codec_.Read(this) : status;
}

const inference::Signature* Call::FindSignature(const std::string& name) {
  signature_ = servable_->Find(name);
  record_.signature_name = inference::LabelOf(signature_);
  return signature_;
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
  codec_.Settle(&record_, &status);
  if (status.ok()) LogIfSampled();
  record_.code = status.code;
  record_.latency = Clock::now() - record_.received;
  backend_.metrics->Record(record_);
  if (has_servable()) servable_->CountAnswer(status.code);
  if (trace_ != nullptr) backend_.tracer->Finish(*trace_, record_);
  codec_.Send(status);
  delete this;
}

void PredictCall::Run(scheduling::Clock::duration waited,
                      std::vector<scheduling::Taken>* companions) {
  inference::RunPredict(this, waited, *companions, backend().workers);
}

void PredictCall::Finish(const Status& status, const engine::Outputs* outputs) {
  if (!status.ok()) return Answer(status);
  record()->expansion = outputs->expansion();
  outputs_ = outputs;
  Answer(WithinMemory([&] { return codec_->Write(ResponseOf(*outputs)); }));
}

PredictResponse PredictCall::ResponseOf(const engine::Outputs& outputs) const {
  const DecodedRequest& request = codec_->request();
  const ModelSpec& spec = request.model_spec;
  PredictResponse response;
  response.model_name = spec.name;
  response.signature_name = inference::SignatureNameOf(spec.signature_name);
  response.version = servable().version();
  response.id = request.id;
  response.outputs = outputs.columns();
  response.encoding = backend().encoding;
  return response;
}

namespace {

void SetValues(const Column& column, tensorflow::TensorProto* tensor) {
  int64_t elements = 0;
  if (!ElementCount(column, &elements).ok()) return;
  if (column.dtype == DT_STRING) {
    std::vector<Bytes> strings;
    static_cast<void>(AddStrings(column, elements, &strings));
    for (const Bytes& value : strings) tensor->add_string_val(value.ToString());
  } else {
    std::string content(elements * ElementSize(column.dtype), '\0');
    static_cast<void>(CopyValues(column, elements, content.data()));
    tensor->set_tensor_content(std::move(content));
  }
}

// The request as TensorFlow Serving's message over gRPC, for the request log. Includes columns from
// item tables, so that the message can be answered without these tables. REQUIRES a request that
// was answered, so its values fill their shapes.
tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request) {
  tensorflow::serving::PredictRequest message;
  message.mutable_model_spec()->set_name(request.model_spec.name);
  message.mutable_model_spec()->set_signature_name(request.model_spec.signature_name);
  for (const std::string_view output : request.output_filter) {
    message.add_output_filter(std::string(output));
  }
  for (const Column& column : request.columns()) {
    tensorflow::TensorProto& tensor = (*message.mutable_inputs())[std::string(column.name)];
    tensor.set_dtype(static_cast<tensorflow::DataType>(column.dtype));
    for (const int64_t dim : column.dims) tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
    SetValues(column, &tensor);
  }
  return message;
}

// REQUIRES well-formed examples.
tensorflow::serving::Input ToInput(const ExampleInput& input) {
  tensorflow::serving::Input message;
  const auto add_examples = [&](auto* list) {
    for (const Bytes& example : input.examples) {
      list->add_examples()->ParseFromString(example.ToString());
    }
  };
  if (input.context.empty()) {
    add_examples(message.mutable_example_list());
  } else {
    message.mutable_example_list_with_context()->mutable_context()->ParseFromString(input.context);
    add_examples(message.mutable_example_list_with_context());
  }
  return message;
}

}  // namespace

void PredictCall::GetMessages(Bytes* request, Bytes* response, std::string made[2]) {
  if (codec_->messages(request, response)) return;
  made[0] = ToPredictRequest(PredictCall::request()).SerializeAsString();
  static_cast<void>(WritePredictResponse(ResponseOf(*outputs_), MakeString(&made[1])));
  *request = Bytes(made[0]);
  *response = Bytes(made[1]);
}

namespace {

using tensorflow::serving::InferenceResult;
using tensorflow::serving::InferenceTask;

template <typename Request, typename Response, typename Result>
void Serialize(const InferenceTask& task, const ExampleInput& input, const InferenceResult& from,
               const Result& result, std::string made[2]) {
  Request request;
  *request.mutable_model_spec() = task.model_spec();
  *request.mutable_input() = ToInput(input);
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
  Status status = inference::RunExamples(found(), found_signature(), codec_->tasks(),
                                         codec_->input(), options, &response_, &call_record());
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
