// Runs Classify, Regress and MultiInference: calls one or more of a model's signatures with
// tf.Examples.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/run.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/scheduling/worker_pool.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// Converts a Classify or Regress request to a MultiInference request with one task.
tensorflow::serving::MultiInferenceRequest OneTask(const tensorflow::serving::ModelSpec& model,
                                                   const char* method_name);

// The first task's spec, which selects the servable. As in TF Serving, the version and label of the
// other tasks are ignored.
const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request);

// Runs the request's tasks on `servable`, on the calling thread, ignoring the model that the
// request names. `first` is the signature named by the first task; null if the servable has no such
// signature. The response has one result per task, in the same order, with the model name,
// signature and version. A task without a signature name uses "serving_default". The examples come
// from `input`, not from the request.
//
// Returns INVALID_ARGUMENT, as in TF Serving, if there are no examples, a signature does not exist
// or does not fit (CheckTask()), or outputs cannot be converted (ToResult()); with several tasks,
// also if model names are missing or differ, or a signature is repeated. Returns RESOURCE_EXHAUSTED
// if the copies of the context, one per example, exceed max_expanded_bytes.
Status RunExamples(const Servable& servable, const Signature* first,
                   const tensorflow::serving::MultiInferenceRequest& request,
                   const ExampleInput& input, const CallOptions& options,
                   tensorflow::serving::MultiInferenceResponse* response,
                   metrics::CallRecord* record);

// Reserves, for one call on a worker, memory and workers that are shared with Predict. Holds the
// reservations until destroyed.
class RunGate {
 public:
  explicit RunGate(scheduling::WorkerPool* workers) : workers_(workers) {}

  // Call before a run in which each of `signatures` runs once. Returns RESOURCE_EXHAUSTED if the
  // run lacks memory or a worker; must_wait() then says whether these may become available.
  Status Enter(const std::vector<const Signature*>& signatures, int64_t rows, int64_t input_bytes);

  // Call after a successful run.
  void Learn();

  // Whether to call Wait() and run again later, instead of answering with the error.
  bool must_wait() const { return must_wait_; }
  void Wait(scheduling::Job* job, scheduling::Clock::duration waited);

 private:
  scheduling::WorkerPool* const workers_;
  scheduling::WorkerPool::Share share_;
  scheduling::RunNeeds needs_;
  scheduling::Clock::duration cost_{};
  int64_t rows_ = 0;
  int64_t input_bytes_ = 0;
  bool must_wait_ = false;
  // Set only for a single signature, because a run of several does not show the cost of each.
  std::optional<MeasuredRun> run_;
};

// Implementation details follow.

// The name of the only input, serialized tf.Examples, of a signature for Classify or Regress.
inline constexpr char kExamplesInput[] = "inputs";

// Sets `fetches` to the outputs that the task needs: for classify, whichever of "classes" and
// "scores" the signature has; for regress, "outputs". Returns INVALID_ARGUMENT if the signature has
// other outputs, an input other than kExamplesInput or, if options.check_method_names is set,
// another method name. Returns UNIMPLEMENTED unless method_name is kClassifyMethodName or
// kRegressMethodName.
Status CheckTask(const tensorflow::SignatureDef& signature, const std::string& method_name,
                 const CallOptions& options, std::vector<std::string>* fetches);

// Converts the outputs to `result`. Classes must be strings and scores floats, both of shape
// [examples, classes]; outputs must be floats of shape [examples] or [examples, 1]. Otherwise
// returns INVALID_ARGUMENT, naming the output.
Status ToResult(const std::vector<OutputColumn>& outputs, const std::string& method_name,
                int64_t examples, tensorflow::serving::InferenceResult* result);

// The tf.Examples of a request, prepared as input for a model. Points into the ExampleInput passed
// to Fill().
class ExampleBatch {
 public:
  // Prepends the context's bytes to each example's, so that protobuf parses one Example with the
  // features of both; the example's features override the context's. Returns INVALID_ARGUMENT if
  // there are no examples or the context is not a tf.Example, and RESOURCE_EXHAUSTED if the copies
  // of the context exceed max_expanded_bytes.
  Status Fill(const ExampleInput& input, const CallOptions& options);

  int64_t size() const { return expansion_.rows; }

  // Reserves what a run of `signatures` needs; see RunGate::Enter().
  Status Enter(const std::vector<const Signature*>& signatures, const CallOptions& options) const;

  // Feeds the batch to a signature and fetches `outputs`. May be called repeatedly. Returns the
  // errors of Model::Predict().
  Status Run(const Servable& servable, const Signature& signature,
             const std::vector<std::string>& outputs, metrics::CallRecord* record,
             std::unique_ptr<engine::Outputs>* result);

 private:
  DecodedRequest request_;
  engine::ExpansionStats expansion_;  // counts the copies of the context, which was sent once
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
