#include "server/inference/run_gate.h"

#include "server/scheduling/run_memory.h"

namespace colcast::inference {

using scheduling::Clock;
using scheduling::RunMemory;

Status RunGate::Enter(const Servable& servable, const std::vector<std::string>& signatures,
                      int64_t rows, int64_t input_bytes) {
  rows_ = rows;
  input_bytes_ = input_bytes;
  for (const std::string& name : signatures) {
    scheduling::RequestClass* const of = servable.request_class(name);
    const Clock::duration cost = of->cost().Of(rows);
    const scheduling::RunNeeds needs = NeedsOfRun(*of, cost, input_bytes);
    cost_ += cost;
    needs_.bytes += needs.bytes;
    needs_.worker += needs.worker;
  }
  if (cost_.count() > 0 && cost_ <= workers_->options().longest_slice) {
    workers_->short_requests().Note();
  }
  const RunMemory::Answer answer = workers_->Reserve(needs_, &share_);
  must_wait_ = answer == RunMemory::Answer::kLater;
  if (answer != RunMemory::Answer::kYes) {
    return TooMuchMemory(rows, input_bytes, needs_.bytes, workers_->options().memory.max_bytes);
  }
  if (signatures.size() == 1) run_.emplace(servable.request_class(signatures[0]));
  return OkStatus();
}

void RunGate::Learn() {
  if (run_) run_->Learn(rows_, input_bytes_);
}

void RunGate::Wait(scheduling::Job* job, Clock::duration waited) {
  workers_->SubmitForLater(job, needs_, Clock::now() - waited, cost_);
}

}  // namespace colcast::inference
