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
#include "server/inference/signature.h"
#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"

namespace colcast::inference {

// Points into the input it was made of.
class ExampleBatch {
 public:
  // The only input of a signature that classifies or regresses: serialized tf.Examples.
  static constexpr char kInput[] = "inputs";

  // A context's bytes come in front of each example's, which by protobuf's rules is one Example
  // with the features of both; where both have a feature, the example's counts. INVALID_ARGUMENT
  // without examples, RESOURCE_EXHAUSTED if the copies of a context fill over max_expanded_bytes.
  Status Fill(const ExampleInput& input, const CallOptions& options);

  int64_t size() const { return expansion_.rows; }

  // Reserves what a run of `signatures` needs, as RunGate::Enter() does.
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures,
               const CallOptions& options) const;

  // Feeds the batch to a signature and fetches `outputs`; may be called again. Errors as Predict's.
  Status Run(const Servable& servable, const std::string& signature_name,
             const std::vector<std::string>& outputs, CallStats* stats,
             std::unique_ptr<engine::Outputs>* result) {
    return Call(&engine::Model::Predict, servable, signature_name, outputs, stats, result);
  }

  // The same for all signatures that share the named one's input: see engine::Model.
  Status RunTogether(const Servable& servable, const std::string& signature_name,
                     const std::vector<std::string>& outputs, CallStats* stats,
                     std::unique_ptr<engine::Outputs>* result) {
    return Call(&engine::Model::PredictTogether, servable, signature_name, outputs, stats, result);
  }

 private:
  using Method = Status (engine::Model::*)(const DecodedRequest&,
                                           std::unique_ptr<engine::Outputs>*) const;

  Status Call(Method method, const Servable& servable, const std::string& signature_name,
              const std::vector<std::string>& outputs, CallStats* stats,
              std::unique_ptr<engine::Outputs>* result);

  DecodedRequest request_;
  engine::ExpansionStats expansion_;  // what sending the context once did
};

// INVALID_ARGUMENT unless the signature's one input is ExampleBatch::kInput and, where the options
// say so, its method_name is `method_name`. `kind`, for the message: "classification".
Status CheckExampleSignature(const tensorflow::SignatureDef& signature, const char* kind,
                             const char* method_name, const CallOptions& options);

// The model's name as the request had it, and the signature and version that answered.
void SetAnsweringModel(const tensorflow::serving::ModelSpec& requested, const Servable& servable,
                       tensorflow::serving::ModelSpec* answered);

// Classify and Regress: `input` run on the one signature that `request` names.
// `check(signature, options, &fetches)` says whether the signature will do and what to fetch;
// `convert(columns, examples, response->mutable_result())` makes the answer of what was fetched.
template <typename Request, typename Response, typename Check, typename Convert>
Status RunExamples(const Servable& servable, const Request& request, const ExampleInput& input,
                   const CallOptions& options, Check check, Convert convert, Response* response,
                   CallStats* stats) {
  const std::string& name = SignatureNameOf(request.model_spec());
  const tensorflow::SignatureDef* signature = nullptr;
  if (Status status = FindSignature(servable, name, &signature); !status.ok()) return status;
  std::vector<std::string> fetches;
  if (Status status = check(*signature, options, &fetches); !status.ok()) return status;
  ExampleBatch batch;
  if (Status status = batch.Fill(input, options); !status.ok()) return status;
  if (Status status = batch.Enter(servable, {name}, options); !status.ok()) return status;
  std::unique_ptr<engine::Outputs> outputs;
  if (Status status = batch.Run(servable, name, fetches, stats, &outputs); !status.ok()) {
    return status;
  }
  if (options.gate != nullptr) options.gate->Learn();
  SetAnsweringModel(request.model_spec(), servable, response->mutable_model_spec());
  return convert(outputs->columns(), batch.size(), response->mutable_result());
}

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_BATCH_H_
