#include "server/inference/multi_inference.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/inference/classify.h"
#include "server/inference/example_batch.h"
#include "server/inference/regress.h"
#include "server/wire/describe.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::InferenceResult;
using tensorflow::serving::InferenceTask;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;

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

// The tensor that a task's examples are fed to.
const std::string& InputTensorOf(const Servable& servable, const Plan& plan) {
  const auto& inputs = servable.signatures().at(plan.signature_name).inputs();
  return inputs.at(ExampleBatch::kInput).name();
}

bool ShareInput(const Servable& servable, const std::vector<Plan>& plans) {
  for (const Plan& plan : plans) {
    if (InputTensorOf(servable, plan) != InputTensorOf(servable, plans[0])) return false;
  }
  return plans.size() > 1;
}

Status ToResult(const Plan& plan, const std::vector<OutputColumn>& columns, int64_t examples,
                InferenceResult* result) {
  return plan.classifies
             ? ToClassification(columns, examples, result->mutable_classification_result())
             : ToRegression(columns, examples, result->mutable_regression_result());
}

// A run for each task: TF 2 gives each signature an input of its own.
Status InferOneByOne(const Servable& servable, const std::vector<Plan>& plans, ExampleBatch* batch,
                     MultiInferenceResponse* response, CallStats* stats) {
  for (size_t i = 0; i < plans.size(); ++i) {
    std::unique_ptr<engine::Outputs> outputs;
    if (Status status =
            batch->Run(servable, plans[i].signature_name, plans[i].fetches, stats, &outputs);
        !status.ok()) {
      return status;
    }
    if (Status status = ToResult(plans[i], outputs->columns(), batch->size(),
                                 response->mutable_results(static_cast<int>(i)));
        !status.ok()) {
      return status;
    }
  }
  return OkStatus();
}

// How a run of several signatures calls an output of one.
std::string JoinedName(const Plan& plan, const std::string& output) {
  return plan.signature_name + '/' + output;
}

// The columns of one signature, by their own names, out of a run of several.
std::vector<OutputColumn> ColumnsOf(const Plan& plan, const engine::Outputs& outputs) {
  std::vector<OutputColumn> columns;
  for (const std::string& name : plan.fetches) {
    for (OutputColumn column : outputs.columns()) {
      if (column.name != JoinedName(plan, name)) continue;
      column.name = name;
      columns.push_back(column);
    }
  }
  return columns;
}

// One run for all tasks, so that examples are parsed once.
Status InferTogether(const Servable& servable, const std::vector<Plan>& plans, ExampleBatch* batch,
                     MultiInferenceResponse* response, CallStats* stats) {
  std::vector<std::string> fetches;
  for (const Plan& plan : plans) {
    for (const std::string& name : plan.fetches) fetches.push_back(JoinedName(plan, name));
  }
  std::unique_ptr<engine::Outputs> outputs;
  if (Status status =
          batch->RunTogether(servable, plans[0].signature_name, fetches, stats, &outputs);
      !status.ok()) {
    return status;
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    if (Status status = ToResult(plans[i], ColumnsOf(plans[i], *outputs), batch->size(),
                                 response->mutable_results(static_cast<int>(i)));
        !status.ok()) {
      return status;
    }
  }
  return OkStatus();
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
  if (Status status = batch.Fill(input, options); !status.ok()) return status;
  std::vector<std::string> signatures;
  for (const Plan& plan : plans) signatures.push_back(plan.signature_name);
  if (Status status = batch.Enter(servable, signatures, options); !status.ok()) return status;
  for (const InferenceTask& task : request.tasks()) {
    SetAnsweringModel(task.model_spec(), servable, response->add_results()->mutable_model_spec());
  }
  const auto infer = ShareInput(servable, plans) ? InferTogether : InferOneByOne;
  return infer(servable, plans, &batch, response, stats);
}

}  // namespace colcast::inference
