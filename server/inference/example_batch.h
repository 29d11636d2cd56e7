// The tf.Examples of a Classify, Regress or MultiInference request, prepared as input for a model.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/call_options.h"
#include "server/inference/run_gate.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// The name of the single input of a signature for Classify or Regress: serialized tf.Examples.
inline constexpr char kExamplesInput[] = "inputs";

// Sets `fetches` to the outputs that the task needs: for classify, whichever of "classes" and
// "scores" the signature has; for regress, "outputs". Returns INVALID_ARGUMENT if the signature has
// other outputs, an input other than kExamplesInput or, if options.check_method_names is set,
// another method name. Returns UNIMPLEMENTED for a method_name other than kClassifyMethodName and
// kRegressMethodName.
Status CheckTask(const tensorflow::SignatureDef& signature, const std::string& method_name,
                 const CallOptions& options, std::vector<std::string>* fetches);

// Converts the outputs to `result`. Classes must be strings and scores floats, both of shape
// [examples, classes]; outputs must be floats of shape [examples] or [examples, 1]. Otherwise
// returns INVALID_ARGUMENT, naming the output.
Status ToResult(const std::vector<OutputColumn>& outputs, const std::string& method_name,
                int64_t examples, tensorflow::serving::InferenceResult* result);

// Points into the ExampleInput passed to Fill().
class ExampleBatch {
 public:
  // Prepends the context's bytes to those of each example, so that protobuf parses one Example with
  // the features of both; the example's features override the context's. Returns INVALID_ARGUMENT
  // if there are no examples, and RESOURCE_EXHAUSTED if the copies of the context exceed
  // max_expanded_bytes.
  Status Fill(const ExampleInput& input, const CallOptions& options);

  int64_t size() const { return expansion_.rows; }

  // Reserves what a run of `signatures` needs; see RunGate::Enter().
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures,
               const CallOptions& options) const;

  // Feeds the batch to a signature and fetches `outputs`. May be called repeatedly. Errors are
  // those of Predict.
  Status Run(const Servable& servable, const std::string& signature_name,
             const std::vector<std::string>& outputs, metrics::CallRecord* record,
             std::unique_ptr<engine::Outputs>* result);

 private:
  DecodedRequest request_;
  engine::ExpansionStats expansion_;  // counts the copies of the context, which was sent once
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
