#include "server/api/predict_call.h"

#include <utility>

#include "server/base/status.h"
#include "server/inference/request_message.h"
#include "server/inference/signature.h"

namespace colcast::api {

void PredictCall::Run(scheduling::Clock::duration waited,
                      std::vector<scheduling::Taken>* companions) {
  inference::RunPredict(this, waited, *companions, backend().workers);
}

void PredictCall::Finish(const Status& status, const engine::Outputs* outputs) {
  if (!status.ok()) return Answer(status);
  record()->expansion = outputs->expansion();
  outputs_ = outputs;
  Status written = WithinMemory([&] { return codec_->Write(ResponseOf(*outputs)); });
  if (written.ok()) Shadow(*outputs);
  Answer(std::move(written));
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

void PredictCall::Shadow(const engine::Outputs& outputs) {
  auto shadow = backend().shadows->Draw(servable());
  if (shadow == nullptr) return;
  Bytes message, response;
  std::string made;
  const Status status = WithinMemory([&] {
    if (!codec_->messages(&message, &response)) {
      made = inference::ToPredictRequest(request()).SerializeAsString();
      message = Bytes(made);
    }
    return OkStatus();
  });
  if (!status.ok()) {
    return backend().shadows->counts().CountNotRun(servable().name(), shadow::NotRun::kNoMemory);
  }
  backend().shadows->Add(std::move(shadow), servable(), message, outputs.columns());
}

void PredictCall::GetMessages(Bytes* request, Bytes* response, std::string made[2]) {
  if (codec_->messages(request, response)) return;
  made[0] = inference::ToPredictRequest(PredictCall::request()).SerializeAsString();
  const PredictResponse answer = ResponseOf(*outputs_);
  made[1].resize(PredictResponseSize(answer));
  WritePredictResponse(answer, reinterpret_cast<uint8_t*>(made[1].data()));
  *request = Bytes(made[0]);
  *response = Bytes(made[1]);
}

}  // namespace colcast::api
