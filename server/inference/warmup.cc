#include "server/inference/warmup.h"

#include <memory>

#include "server/inference/classify.h"
#include "server/inference/multi_inference.h"
#include "server/inference/predict.h"
#include "server/inference/regress.h"
#include "server/inference/tfrecord.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::PredictionLog;

// The second one is the exporter's, for requests that TensorFlow Serving may refuse.
constexpr const char* kFiles[] = {"/assets.extra/tf_serving_warmup_requests",
                                  "/assets.extra/colcast_warmup_requests"};
constexpr int kMaxRecords = 1000;

Status Run(const Servable& servable, const PredictionLog& log) {
  const CallOptions options;
  CallStats stats;
  switch (log.log_type_case()) {
    case PredictionLog::kPredictLog: {
      std::unique_ptr<engine::Outputs> outputs;
      return Predict(servable, log.predict_log().request(), &outputs);
    }
    case PredictionLog::kClassifyLog: {
      tensorflow::serving::ClassificationResponse response;
      return Classify(servable, log.classify_log().request(), options, &response, &stats);
    }
    case PredictionLog::kRegressLog: {
      tensorflow::serving::RegressionResponse response;
      return Regress(servable, log.regress_log().request(), options, &response, &stats);
    }
    case PredictionLog::kMultiInferenceLog: {
      tensorflow::serving::MultiInferenceResponse response;
      return MultiInference(servable, log.multi_inference_log().request(), options, &response,
                            &stats);
    }
    case PredictionLog::kPredictStreamedLog:
    case PredictionLog::kSessionRunLog:
      return Error(StatusCode::kUnimplemented,
                   "a session_run_log or predict_streamed_log can not be replayed");
    case PredictionLog::LOG_TYPE_NOT_SET:
      break;
  }
  return OkStatus();
}

Status Replay(const Servable& servable, const std::string& record, int iterations) {
  PredictionLog log;
  if (!log.ParseFromString(record)) return InvalidArgument("it is no PredictionLog");
  for (int i = 0; i < iterations; ++i) {
    if (Status status = Run(servable, log); !status.ok()) return status;
  }
  return OkStatus();
}

Status ReplayFile(const Servable& servable, const std::string& path, int iterations,
                  int* num_records) {
  TfRecordReader reader(path);
  std::string record;
  for (int number = 1;; ++number) {
    bool at_end = false;
    Status status = reader.Next(&record, &at_end);
    if (!status.ok() || at_end) return status;
    if (number > kMaxRecords) {
      return InvalidArgument("warm-up: ", path, " has more than ", kMaxRecords, " records");
    }
    ++*num_records;
    status = Replay(servable, record, iterations);
    if (!status.ok()) {
      status.message =
          "warm-up: record " + std::to_string(number) + " of " + path + ": " + status.message;
      return status;
    }
  }
}

}  // namespace

Status WarmUp(const Servable& servable, const std::string& directory, const WarmupOptions& options,
              int* num_records) {
  *num_records = 0;
  if (!options.enabled) return OkStatus();
  for (const char* file : kFiles) {
    const Status status = ReplayFile(servable, directory + file, options.iterations, num_records);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace colcast::inference
