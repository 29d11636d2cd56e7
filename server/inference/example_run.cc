#include "server/inference/example_run.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

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
  const Signature* signature;
  std::string method_name;
  std::vector<std::string> fetches;
};

Status MakePlans(const Servable& servable, const Signature* first,
                 const MultiInferenceRequest& request, const CallOptions& options,
                 std::vector<Plan>* plans) {
  if (Status status = CheckModelNames(request); !status.ok()) return status;
  std::set<const Signature*> signatures;
  for (const InferenceTask& task : request.tasks()) {
    const std::string& name = task.model_spec().signature_name();
    Plan plan = {plans->empty() ? first : servable.Find(name), task.method_name(), {}};
    if (plan.signature == nullptr) return servable.NoSignature(name);
    Status status = CheckTask(*plan.signature->def, plan.method_name, options, &plan.fetches);
    if (!status.ok()) return status;
    if (!signatures.insert(plan.signature).second) {
      return InvalidArgument("Duplicate evaluation of signature: ", plan.signature->name);
    }
    plans->push_back(plan);
  }
  return OkStatus();
}

// Pins the tables, so that all tasks read the same rows.
Status RunTasks(const Servable& servable, const std::vector<Plan>& plans, ExampleBatch* batch,
                MultiInferenceResponse* response, metrics::CallRecord* record) {
  const std::shared_ptr<const void> pinned = servable.model().PinTables();
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    std::unique_ptr<engine::Outputs> outputs;
    Status status = batch->Run(servable, *plan.signature, plan.fetches, record, &outputs);
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

Status RunExamples(const Servable& servable, const Signature* first,
                   const MultiInferenceRequest& request, const ExampleInput& input,
                   const CallOptions& options, MultiInferenceResponse* response,
                   metrics::CallRecord* record) {
  std::vector<Plan> plans;
  Status status = MakePlans(servable, first, request, options, &plans);
  if (!status.ok()) return status;
  ExampleBatch batch;
  if (status = batch.Fill(input, options); !status.ok()) return status;
  std::vector<const Signature*> signatures;
  for (const Plan& plan : plans) {
    signatures.push_back(plan.signature);
    auto* const answered = response->add_results()->mutable_model_spec();
    answered->set_name(request.tasks(response->results_size() - 1).model_spec().name());
    answered->set_signature_name(std::string(plan.signature->name));
    answered->mutable_version()->set_value(servable.version());
  }
  if (status = batch.Enter(signatures, options); !status.ok()) return status;
  status = RunTasks(servable, plans, &batch, response, record);
  if (status.ok() && options.gate != nullptr) options.gate->Learn();
  return status;
}

using scheduling::Clock;
using scheduling::RunBudget;

Status RunGate::Enter(const std::vector<const Signature*>& signatures, int64_t rows,
                      int64_t input_bytes) {
  rows_ = rows;
  input_bytes_ = input_bytes;
  for (const Signature* const signature : signatures) {
    scheduling::RequestClass& of = *signature->request_class;
    const Clock::duration cost = of.cost().Of(rows);
    const scheduling::RunNeeds needs = NeedsOfRun(of, cost, input_bytes);
    cost_ += cost;
    needs_.bytes += needs.bytes;
    needs_.worker += needs.worker;
  }
  if (cost_.count() > 0 && cost_ <= workers_->options().longest_slice) {
    workers_->short_requests().Note();
  }
  const RunBudget::Answer answer = workers_->Reserve(needs_, &share_);
  must_wait_ = answer == RunBudget::Answer::kLater;
  if (answer != RunBudget::Answer::kYes) {
    return TooMuchMemory(rows, input_bytes, needs_.bytes, workers_->options().memory.max_bytes);
  }
  if (signatures.size() == 1) run_.emplace(signatures[0]->request_class.get());
  return OkStatus();
}

void RunGate::Learn() {
  if (run_) run_->Learn(rows_, input_bytes_);
}

void RunGate::Wait(scheduling::Job* job, Clock::duration waited) {
  workers_->SubmitForLater(job, needs_, Clock::now() - waited, cost_);
}

}  // namespace colcast::inference
