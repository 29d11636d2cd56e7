#include "server/inference/multi_inference.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/inference/classification.h"
#include "server/inference/example_batch.h"
#include "server/inference/example_call.h"
#include "server/inference/example_signature.h"
#include "server/inference/regression.h"
#include "server/wire/describe.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::InferenceResult;
using tensorflow::serving::InferenceTask;
using tensorflow::serving::MultiInferenceRequest;

Status CheckModelNames(const MultiInferenceRequest& request) {
  const std::string& wanted = ModelSpecOf(request).name();
  for (const InferenceTask& task : request.tasks()) {
    const std::string& name = task.model_spec().name();
    if (name.empty()) return InvalidArgument("Found ModelSpec with an empty model name.");
    if (name != wanted) {
      return InvalidArgument(
          "All ModelSpecs in a MultiInferenceRequest must access the same model name. Found ",
          Quoted(wanted), " and ", Quoted(name));
    }
  }
  return OkStatus();
}

// What one task asks for, checked.
struct Plan {
  std::string signature_name;
  std::vector<std::string> fetches;
  bool classifies = false;
};

Status MakePlan(const Servable& servable, const InferenceTask& task, const CallOptions& options,
                Plan* plan) {
  plan->signature_name = SignatureNameOf(task.model_spec());
  const tensorflow::SignatureDef* signature = nullptr;
  if (Status status = FindSignature(servable, plan->signature_name, &signature); !status.ok()) {
    return status;
  }
  plan->classifies = task.method_name() == kClassifyMethodName;
  if (plan->classifies) return CheckClassification(*signature, options, &plan->fetches);
  if (task.method_name() == kRegressMethodName) {
    return CheckRegression(*signature, options, &plan->fetches);
  }
  return Error(StatusCode::kUnimplemented,
               "Unsupported signature method_name: ", Quoted(task.method_name()), "; expected ",
               kClassifyMethodName, " or ", kRegressMethodName);
}

Status MakePlans(const Servable& servable, const MultiInferenceRequest& request,
                 const CallOptions& options, std::vector<Plan>* plans) {
  if (Status status = CheckModelNames(request); !status.ok()) return status;
  std::set<std::string> signature_names;
  for (const InferenceTask& task : request.tasks()) {
    Plan plan;
    if (Status status = MakePlan(servable, task, options, &plan); !status.ok()) return status;
    if (!signature_names.insert(plan.signature_name).second) {
      return InvalidArgument("Duplicate evaluation of signature: ", plan.signature_name);
    }
    plans->push_back(plan);
  }
  return OkStatus();
}

Status Infer(const Servable& servable, const Plan& plan, ExampleBatch* batch, CallStats* stats,
             InferenceResult* result) {
  std::unique_ptr<engine::Outputs> outputs;
  if (Status status = batch->Run(servable, plan.signature_name, plan.fetches, stats, &outputs);
      !status.ok()) {
    return status;
  }
  return plan.classifies
             ? ToClassification(*outputs, batch->size(), result->mutable_classification_result())
             : ToRegression(*outputs, batch->size(), result->mutable_regression_result());
}

}  // namespace

const tensorflow::serving::ModelSpec& ModelSpecOf(const MultiInferenceRequest& request) {
  return request.tasks().empty() ? tensorflow::serving::ModelSpec::default_instance()
                                 : request.tasks(0).model_spec();
}

Status MultiInference(const Servable& servable, const MultiInferenceRequest& request,
                      const ExampleInput& input, const CallOptions& options,
                      tensorflow::serving::MultiInferenceResponse* response, CallStats* stats) {
  std::vector<Plan> plans;
  if (Status status = MakePlans(servable, request, options, &plans); !status.ok()) return status;
  ExampleBatch batch;
  if (Status status = ExampleBatch::Create(input, &batch); !status.ok()) return status;
  for (int i = 0; i < request.tasks_size(); ++i) {
    InferenceResult* result = response->add_results();
    SetAnsweringModel(request.tasks(i).model_spec(), servable, result->mutable_model_spec());
    if (Status status = Infer(servable, plans[i], &batch, stats, result); !status.ok()) {
      return status;
    }
  }
  return OkStatus();
}

Status MultiInference(const Servable& servable, const MultiInferenceRequest& request,
                      const CallOptions& options,
                      tensorflow::serving::MultiInferenceResponse* response, CallStats* stats) {
  std::string message;
  ExampleInput input;
  if (Status status = TakeInput(request, kMultiInferenceRequest, &message, &input); !status.ok())
    return status;
  return MultiInference(servable, request, input, options, response, stats);
}

}  // namespace colcast::inference
