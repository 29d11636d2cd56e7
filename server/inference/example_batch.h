// The tf.Examples of a Classify, Regress or MultiInference request on their way into a model.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/wire/example_request.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

class ExampleBatch {
 public:
  // The only input of a signature that classifies or regresses: serialized tf.Examples.
  static constexpr char kInput[] = "inputs";

  // A context's bytes come in front of each example's, which by protobuf's rules is one Example
  // with the features of both; where both have a feature, the example's counts. INVALID_ARGUMENT
  // without examples, RESOURCE_EXHAUSTED if the copies of a context fill over max_expanded_bytes.
  static Status Create(const ExampleInput& input, const CallOptions& options, ExampleBatch* batch);

  int64_t size() const { return expansion_.rows; }

  // Feeds the batch to a signature and fetches `outputs`; may be called again. Errors as Predict's.
  Status Run(const Servable& servable, const std::string& signature_name,
             const std::vector<std::string>& outputs, CallStats* stats,
             std::unique_ptr<engine::Outputs>* result);

  // The same for all signatures that share the named one's input: see PredictTogether.
  Status RunTogether(const Servable& servable, const std::string& signature_name,
                     const std::vector<std::string>& outputs, CallStats* stats,
                     std::unique_ptr<engine::Outputs>* result);

 private:
  using Method = Status (*)(const Servable&, const tensorflow::serving::PredictRequest&,
                            std::unique_ptr<engine::Outputs>*);

  Status Call(Method method, const Servable& servable, const std::string& signature_name,
              const std::vector<std::string>& outputs, CallStats* stats,
              std::unique_ptr<engine::Outputs>* result);

  tensorflow::serving::PredictRequest request_;
  engine::ExpansionStats expansion_;  // what sending the context once did
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
