#include "server/inference/warmup.h"

#include <memory>

#include "server/inference/example_run.h"
#include "server/inference/tfrecord.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::PredictionLog;

constexpr int kMaxRecords = 1000;

// Paths relative to the version's directory. The second file, which the exporter writes, is for
// requests that TensorFlow Serving might refuse. Either file may be missing.
constexpr const char* kWarmupFiles[] = {"/assets.extra/tf_serving_warmup_requests",
                                        "/assets.extra/colcast_warmup_requests"};

Status Predict(const Servable& servable, const tensorflow::serving::PredictRequest& recorded,
               int iterations) {
  const std::string message = recorded.SerializeAsString();
  DecodedRequest request;
  if (Status status = DecodePredictRequest(Bytes(message), &request); !status.ok()) return status;
  const int number = NumberOf(servable.Find(request.model_spec.signature_name));
  std::unique_ptr<engine::Outputs> outputs;
  for (int i = 0; i < iterations; ++i) {
    Status status = servable.model().Predict(request, number, &outputs);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

// Replays a recorded request with tf.Examples.
Status RunTasks(const Servable& servable, const google::protobuf::Message& recorded,
                const tensorflow::serving::MultiInferenceRequest& tasks, int iterations) {
  const CallOptions options;
  const Signature* const first = servable.Find(ModelSpecOf(tasks).signature_name());
  const std::string message = recorded.SerializeAsString();
  ExampleRequest request;
  if (Status status = DecodeExampleRequest(Bytes(message), recorded.GetDescriptor()->name().c_str(),
                                           options.max_request_rows, &request);
      !status.ok()) {
    return status;
  }
  for (int i = 0; i < iterations; ++i) {
    tensorflow::serving::MultiInferenceResponse response;
    metrics::CallRecord record;
    Status status = RunExamples(servable, first, tasks, request.input, options, &response, &record);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

Status Replay(const Servable& servable, const std::string& record, int iterations) {
  PredictionLog log;
  if (!log.ParseFromString(record)) return InvalidArgument("it is not a PredictionLog");
  switch (log.log_type_case()) {
    case PredictionLog::kPredictLog:
      return Predict(servable, log.predict_log().request(), iterations);
    case PredictionLog::kClassifyLog: {
      const auto& request = log.classify_log().request();
      return RunTasks(servable, request, OneTask(request.model_spec(), kClassifyMethodName),
                      iterations);
    }
    case PredictionLog::kRegressLog: {
      const auto& request = log.regress_log().request();
      return RunTasks(servable, request, OneTask(request.model_spec(), kRegressMethodName),
                      iterations);
    }
    case PredictionLog::kMultiInferenceLog: {
      const auto& request = log.multi_inference_log().request();
      return RunTasks(servable, request, request, iterations);
    }
    case PredictionLog::kPredictStreamedLog:
    case PredictionLog::kSessionRunLog:
      return Error(StatusCode::kUnimplemented,
                   "a session_run_log or predict_streamed_log cannot be replayed");
    case PredictionLog::LOG_TYPE_NOT_SET:
      break;
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
  for (const char* file : kWarmupFiles) {
    const Status status = ReplayFile(servable, directory + file, options.iterations, num_records);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace colcast::inference
