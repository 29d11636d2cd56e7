#include "server/rpc/prediction_service.h"

#include <memory>
#include <string>

#include "server/base/out_of_memory.h"
#include "server/inference/call.h"
#include "server/inference/classify.h"
#include "server/inference/multi_inference.h"
#include "server/inference/regress.h"
#include "server/inference/run_gate.h"
#include "server/rpc/messages.h"
#include "server/rpc/predict_call.h"
#include "server/rpc/worker_call.h"
#include "server/wire/example_request.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"

namespace colcast::rpc {
namespace {

using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

constexpr char kSignatureDef[] = "signature_def";

Status CheckMetadataFields(const GetModelMetadataRequest& request) {
  if (request.metadata_field().empty()) {
    return InvalidArgument("GetModelMetadata needs a metadata_field; there is one: \"",
                           kSignatureDef, "\"");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatureDef) {
      return InvalidArgument("Metadata field ", field, " is not supported; there is one: \"",
                             kSignatureDef, "\"");
    }
  }
  return OkStatus();
}

Status Describe(const models::ModelManager& models, const GetModelMetadataRequest& request,
                GetModelMetadataResponse* response) {
  if (Status status = CheckMetadataFields(request); !status.ok()) return status;
  std::shared_ptr<const inference::Servable> servable;
  const ModelSpec spec = FromProto(request.model_spec());
  if (Status status = models.Find(spec, &servable); !status.ok()) return status;
  tensorflow::serving::SignatureDefMap map;
  *map.mutable_signature_def() = servable->signatures();
  response->mutable_model_spec()->set_name(spec.name);
  response->mutable_model_spec()->mutable_version()->set_value(servable->version());
  (*response->mutable_metadata())[kSignatureDef].PackFrom(map);
  return OkStatus();
}

template <typename Request>
const tensorflow::serving::ModelSpec& ModelSpecOf(const Request& request) {
  return request.model_spec();
}

const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request) {
  return inference::ModelSpecOf(request);
}

// One call of Classify, Regress or MultiInference. The message is read by the worker, not where
// it came, and its tf.Examples by nobody but the model: parsing them takes longer than
// many a model to run.
template <typename Request, typename Response>
class ExampleCall final : public WorkerCall {
 public:
  using Infer = Status (*)(const inference::Servable&, const Request&, const ExampleInput&,
                           const inference::CallOptions&, Response*, inference::CallStats*);

  // `schema` is the request's; the others as WorkerCall has them.
  ExampleCall(const char* api, const MessageSchema& schema, Infer infer, Call* call,
              const Backend& backend)
      : WorkerCall(api, call, backend), schema_(schema), infer_(infer) {}

  void Run(scheduling::Clock::duration waited, std::vector<scheduling::Taken>*) override {
    record()->queue_wait = waited;
    inference::RunGate gate(backend().workers);
    Status status = Prepare();
    if (status.ok()) status = WithinMemory([&] { return Respond(&gate); });
    if (gate.must_wait()) return gate.Wait(this, waited);
    Answer(std::move(status));
  }

 private:
  // Writes the answer to response(), or says why there is none.
  Status Respond(inference::RunGate* gate) {
    const std::string& name = Request::descriptor()->name();
    ExampleRequest parts;
    if (Status status = DecodeExampleRequest(request().bytes(), schema_, name.c_str(),
                                             backend().calls.max_request_rows, &parts);
        !status.ok()) {
      return status;
    }
    Request parsed;
    if (!parsed.ParseFromString(parts.rest)) {
      return Internal("the ", name, "'s checker and protobuf disagree");
    }
    if (Status status = FindServable(FromProto(ModelSpecOf(parsed))); !status.ok()) return status;
    Response answer;
    inference::CallStats stats;
    inference::CallOptions options = backend().calls;
    options.gate = gate;
    const Status status = infer_(servable(), parsed, parts.input, options, &answer, &stats);
    record()->run_start = stats.run_start;
    record()->runtime = stats.runtime;
    record()->expansion = stats.expansion;
    return status.ok() ? WriteMessage(answer, response()) : status;
  }

  const MessageSchema& schema_;
  const Infer infer_;
};

template <typename Request, typename Response>
Method ExampleMethod(const char* name, const MessageSchema& schema,
                     typename ExampleCall<Request, Response>::Infer infer, const Backend& backend) {
  return Method{[name, &schema, infer, &backend](Call* call) {
    (new ExampleCall<Request, Response>(name, schema, infer, call, backend))->Submit();
  }};
}

}  // namespace

Methods PredictionMethods(const Backend& backend, Offload* offload) {
  Methods methods;
  const auto add = [&methods](const char* name, Method method) {
    methods.emplace(PathOf(kPredictionService, name), std::move(method));
  };
  add("Predict", Method{[&backend, offload](Call* call) {
        if (offload != nullptr && offload->Take(call)) return;
        (new PredictCall(kPredictCodec, call, backend))->Submit();
      }});
  add("Classify", ExampleMethod<ClassificationRequest, ClassificationResponse>(
                      "Classify", kExampleRequest, inference::Classify, backend));
  add("Regress", ExampleMethod<RegressionRequest, RegressionResponse>("Regress", kExampleRequest,
                                                                      inference::Regress, backend));
  add("MultiInference",
      ExampleMethod<MultiInferenceRequest, MultiInferenceResponse>(
          "MultiInference", kMultiInferenceRequest, inference::MultiInference, backend));
  add("GetModelMetadata",
      MessageMethod<GetModelMetadataRequest, GetModelMetadataResponse>(
          [&backend](const GetModelMetadataRequest& request, GetModelMetadataResponse* response) {
            return Describe(*backend.models, request, response);
          }));
  return methods;
}

}  // namespace colcast::rpc
