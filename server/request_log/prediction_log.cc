#include "server/request_log/prediction_log.h"

#include "server/wire/reader.h"
#include "server/wire/varint.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::request_log {
namespace {

using tensorflow::serving::PredictionLog;
using tensorflow::serving::PredictLog;

// The field for the log of `api`. Each such log holds request and response in PredictLog's fields.
uint32_t LogField(std::string_view api) {
  if (api == "Classify") return PredictionLog::kClassifyLogFieldNumber;
  if (api == "Regress") return PredictionLog::kRegressLogFieldNumber;
  if (api == "MultiInference") return PredictionLog::kMultiInferenceLogFieldNumber;
  return PredictionLog::kPredictLogFieldNumber;
}

std::string Metadata(const LoggedCall& call, double sampling_rate, int64_t timestamp_seconds) {
  PredictionLog log;
  auto* metadata = log.mutable_log_metadata();
  auto* spec = metadata->mutable_model_spec();
  spec->set_name(std::string(call.model_name));
  spec->mutable_version()->set_value(call.version);
  spec->set_signature_name(std::string(call.signature_name));
  metadata->mutable_sampling_config()->set_sampling_rate(sampling_rate);
  metadata->set_timestamp_secs(timestamp_seconds);
  return log.SerializeAsString();
}

size_t FieldSize(size_t body) { return 1 + VarintSize(body) + body; }

// Appends the tag and the length of a bytes field with a number below 16.
void AppendHead(uint32_t field, size_t body, std::string* text) {
  AppendVarint(MakeTag(field, kLengthType), text);
  AppendVarint(body, text);
}

void AppendField(uint32_t field, const Bytes& body, std::string* text) {
  AppendHead(field, body.size(), text);
  body.ForEachPiece([text](const uint8_t* data, size_t size) {
    text->append(reinterpret_cast<const char*>(data), size);
  });
}

}  // namespace

std::string MakePredictionLog(const LoggedCall& call, double sampling_rate,
                              int64_t timestamp_seconds) {
  std::string log = Metadata(call, sampling_rate, timestamp_seconds);
  const size_t body = FieldSize(call.request.size()) + FieldSize(call.response.size());
  log.reserve(log.size() + FieldSize(body));
  AppendHead(LogField(call.api), body, &log);
  AppendField(PredictLog::kRequestFieldNumber, call.request, &log);
  AppendField(PredictLog::kResponseFieldNumber, call.response, &log);
  return log;
}

}  // namespace colcast::request_log
