// The tf.Examples of a Classify, Regress or MultiInference request, prepared as a model's input.
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

// Points into the ExampleInput given to Fill().
class ExampleBatch {
 public:
  // Prepends the context's bytes to each example's; protobuf then reads one Example with the
  // features of both, the example's winning where both have one. Returns INVALID_ARGUMENT if there
  // are no examples, and RESOURCE_EXHAUSTED if the copies of the context exceed max_expanded_bytes.
  Status Fill(const ExampleInput& input, const CallOptions& options);

  int64_t size() const { return expansion_.rows; }

  // Reserves what a run of `signatures` needs; see RunGate::Enter().
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures,
               const CallOptions& options) const;

  // Feeds the batch to a signature and fetches `outputs`. May be called repeatedly. Errors are
  // Predict's.
  Status Run(const Servable& servable, const std::string& signature_name,
             const std::vector<std::string>& outputs, metrics::CallRecord* record,
             std::unique_ptr<engine::Outputs>* result) {
    return Call(&engine::Model::Predict, servable, signature_name, outputs, record, result);
  }

  // Run() for all signatures that share the named one's input in one run; see engine::Model.
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
  engine::ExpansionStats expansion_;  // counts the copies of the context, which was sent once
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
