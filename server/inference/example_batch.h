// The tf.Examples of a Classify, Regress or MultiInference request on their way into a model.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/call.h"
#include "server/inference/run_gate.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"

namespace colcast::inference {

// Points into the input it was made of.
class ExampleBatch {
 public:
  // A context's bytes precede each example's, which protobuf reads as one Example with the features
  // of both; where both have a feature, the example's counts. INVALID_ARGUMENT
  // without examples, RESOURCE_EXHAUSTED if the copies of a context fill over max_expanded_bytes.
  Status Fill(const ExampleInput& input, const CallOptions& options);

  int64_t size() const { return expansion_.rows; }

  // Reserves what a run of `signatures` needs, as RunGate::Enter() does.
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures,
               const CallOptions& options) const;

  // Feeds the batch to a signature and fetches `outputs`; may be called again. Errors as Predict's.
  Status Run(const Servable& servable, const std::string& signature_name,
             const std::vector<std::string>& outputs, metrics::CallRecord* record,
             std::unique_ptr<engine::Outputs>* result) {
    return Call(&engine::Model::Predict, servable, signature_name, outputs, record, result);
  }

  // The same for all signatures that share the named one's input: see engine::Model.
  Status RunTogether(const Servable& servable, const std::string& signature_name,
                     const std::vector<std::string>& outputs, metrics::CallRecord* record,
                     std::unique_ptr<engine::Outputs>* result) {
    return Call(&engine::Model::PredictTogether, servable, signature_name, outputs, record, result);
  }

 private:
  using Method = Status (engine::Model::*)(const DecodedRequest&,
                                           std::unique_ptr<engine::Outputs>*) const;

  Status Call(Method method, const Servable& servable, const std::string& signature_name,
              const std::vector<std::string>& outputs, metrics::CallRecord* record,
              std::unique_ptr<engine::Outputs>* result);

  DecodedRequest request_;
  engine::ExpansionStats expansion_;  // what sending the context once did
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
