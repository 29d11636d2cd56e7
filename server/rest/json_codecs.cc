#include "server/rest/json_codecs.h"

#include "server/api/call.h"
#include "server/base/status.h"
#include "server/inference/call.h"
#include "server/inference/example_run.h"
#include "server/inference/predict_run.h"
#include "server/inference/signature.h"
#include "server/rest/json_response.h"
#include "server/rest/predict_json.h"

namespace colcast::http {

namespace {

// False if any signature fixes the input's first dimension. Checks all signatures, because the
// request may name its own only at the end of the body.
template <typename Signatures>
bool MayHaveRows(const Signatures& signatures, const std::string& input) {
  for (const auto& [name, signature] : signatures) {
    const auto found = signature.inputs().find(input);
    if (found == signature.inputs().end() || !found->second.has_tensor_shape()) continue;
    const auto& shape = found->second.tensor_shape();
    const bool is_fixed =
        !shape.unknown_rank() && (shape.dim_size() == 0 || shape.dim(0).size() >= 0);
    if (is_fixed) return false;
  }
  return true;
}

// The minimum size of the outputs as JSON.
size_t LeastBytes(const PredictResponse& response) {
  size_t bytes = 0;
  for (const OutputColumn& output : response.outputs) {
    const bool is_decimal = output.dtype == DT_FLOAT || output.dtype == DT_DOUBLE;  // "0.0,"
    bytes += static_cast<size_t>(output.ElementCount()) * (is_decimal ? 4 : 1);
  }
  return bytes;
}

}  // namespace

Status JsonBody::ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) {
  *inflates_too_far = false;
  const RowLimit rows{call->backend().calls.max_request_rows, [call](const std::string& input) {
                        return MayHaveRows(call->found().signatures(), input);
                      }};
  const BodyBytes body{body_.slices(), is_compressed(), max_bytes, &rows, inflates_too_far};
  Status status = WithinMemory([&] {
    try {
      Status found = call->FindServable(model_);
      if (!found.ok()) return found;
      Status parsed = Parse(body, call->found());
      exchange_.set_too_large(*inflates_too_far);
      call->SetSignature(signature_name());
      return parsed.ok() ? Finish(call->found()) : parsed;
    } catch (const OverMemoryLimit&) {
      bool is_final = false;
      Status refused = memory_->Refusal(&is_final);
      exchange_.set_too_large(is_final);
      return refused;
    }
  });
  if (status.ok()) body_.Clear();
  return status;
}

void JsonPredict::Describe(api::PredictCall* call, scheduling::JobProfile* profile) {
  inference::DescribePredict(call, profile);
}

Status JsonPredict::Write(const PredictResponse& response) {
  Status status = http_->CountAnswer(LeastBytes(response));
  return status.ok() ? json_.Write(response, exchange_.response()) : status;
}

Status JsonPredict::Parse(const BodyBytes& body, const inference::Servable& servable) {
  // Finds a signature and adds the keys of item tables to its inputs.
  const auto find = [&](const std::string& name, const tensorflow::SignatureDef** signature) {
    Status status = inference::FindSignature(servable, inference::SignatureNameOf(name), signature);
    if (!status.ok() || servable.items() == nullptr) return status;
    with_keys_ = **signature;
    servable.items()->AddKeys(&with_keys_);
    *signature = &with_keys_;
    return status;
  };
  return json_.Read(body, find);
}

Status JsonPredict::Finish(const inference::Servable& servable) {
  ModelSpec& spec = request().model_spec;
  spec.name = servable.name();
  spec.signature_name = signature_name();
  return OkStatus();
}

JsonExamples::JsonExamples(std::shared_ptr<Exchange> exchange, std::chrono::milliseconds timeout,
                           const RestCall& call)
    : JsonBody(std::move(exchange), timeout, call.model),
      classifies_(call.method == RestMethod::kClassify),
      examples_(memory_.get()) {}

const char* JsonExamples::api() const { return classifies_ ? "Classify" : "Regress"; }

Status JsonExamples::Parse(const BodyBytes& body, const inference::Servable&) {
  return examples_.Read(body);
}

Status JsonExamples::Finish(const inference::Servable& servable) {
  tensorflow::serving::ModelSpec spec;
  spec.set_name(servable.name());
  spec.set_signature_name(signature_name());
  tasks_ = inference::OneTask(
      spec, classifies_ ? inference::kClassifyMethodName : inference::kRegressMethodName);
  return examples_.examples_status();
}

Status JsonExamples::Write(const tensorflow::serving::MultiInferenceResponse& response) {
  const auto& result = response.results(0);
  exchange_.response()->body = classifies_ ? WriteClassifications(result.classification_result())
                                           : WriteRegressions(result.regression_result());
  return OkStatus();
}

}  // namespace colcast::http
