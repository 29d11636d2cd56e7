#include "server/inference/example_run.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/inference/example_batch.h"
#include "server/inference/signature.h"
#include "server/wire/data_type.h"

namespace colcast::inference {
namespace {

using tensorflow::serving::InferenceTask;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;

Status CheckModelNames(const MultiInferenceRequest& request) {
  if (request.tasks_size() == 1) return OkStatus();
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

// A checked task.
struct Plan {
  std::string signature_name;
  std::string method_name;
  std::vector<std::string> fetches;
};

Status MakePlan(const Servable& servable, const InferenceTask& task, const CallOptions& options,
                Plan* plan) {
  plan->signature_name = SignatureNameOf(task.model_spec());
  plan->method_name = task.method_name();
  const tensorflow::SignatureDef* signature = nullptr;
  Status status = FindSignature(servable, plan->signature_name, &signature);
  return status.ok() ? CheckTask(*signature, plan->method_name, options, &plan->fetches) : status;
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

// All tasks read the same rows of tables.
Status RunTasks(const Servable& servable, const std::vector<Plan>& plans, ExampleBatch* batch,
                MultiInferenceResponse* response, metrics::CallRecord* record) {
  const std::shared_ptr<const void> pinned = servable.model().PinTables();
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    std::unique_ptr<engine::Outputs> outputs;
    Status status = batch->Run(servable, plan.signature_name, plan.fetches, record, &outputs);
    if (status.ok()) {
      status = ToResult(outputs->columns(), plan.method_name, batch->size(),
                        response->mutable_results(static_cast<int>(i)));
    }
    if (!status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace

MultiInferenceRequest OneTask(const tensorflow::serving::ModelSpec& model,
                              const char* method_name) {
  MultiInferenceRequest request;
  InferenceTask* const task = request.add_tasks();
  *task->mutable_model_spec() = model;
  task->set_method_name(method_name);
  return request;
}

const tensorflow::serving::ModelSpec& ModelSpecOf(const MultiInferenceRequest& request) {
  return request.tasks().empty() ? tensorflow::serving::ModelSpec::default_instance()
                                 : request.tasks(0).model_spec();
}

Status RunExamples(const Servable& servable, const MultiInferenceRequest& request,
                   const ExampleInput& input, const CallOptions& options,
                   MultiInferenceResponse* response, metrics::CallRecord* record) {
  std::vector<Plan> plans;
  if (Status status = MakePlans(servable, request, options, &plans); !status.ok()) return status;
  ExampleBatch batch;
  if (Status status = batch.Fill(input, options); !status.ok()) return status;
  std::vector<std::string> signatures;
  for (const Plan& plan : plans) {
    signatures.push_back(plan.signature_name);
    auto* const answered = response->add_results()->mutable_model_spec();
    answered->set_name(request.tasks(response->results_size() - 1).model_spec().name());
    answered->set_signature_name(plan.signature_name);
    answered->mutable_version()->set_value(servable.version());
  }
  if (Status status = batch.Enter(servable, signatures, options); !status.ok()) return status;
  Status status = RunTasks(servable, plans, &batch, response, record);
  if (status.ok() && options.gate != nullptr) options.gate->Learn();
  return status;
}

}  // namespace colcast::inference
