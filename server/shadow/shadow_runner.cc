#include "server/shadow/shadow_runner.h"

#include <chrono>
#include <string>

#include "server/base/log.h"
#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/inference/input_bytes.h"
#include "server/shadow/drift.h"

namespace colcast::shadow {
namespace {

using inference::Servable;
using scheduling::Clock;
using scheduling::RunMemory;

constexpr int kLowestPriority = 19;

// How long a request may wait for an idle worker, and the interval between checks for one.
constexpr std::chrono::seconds kLongestWait(1);
constexpr std::chrono::milliseconds kBetweenLooks(1);

// The interval between log lines about failures.
constexpr std::chrono::minutes kBetweenLogs(1);

Status Read(const Answered& answered, DecodedRequest* request) {
  Status status = DecodePredictRequest(Bytes(answered.request), request);
  const inference::ItemLookup* const items = answered.shadow->items();
  int64_t unknown_keys = 0;
  return status.ok() && items != nullptr ? items->Fill(request, &unknown_keys) : status;
}

int64_t BytesOfRun(const DecodedRequest& request, const engine::RequestProfile& profile,
                   const Servable& servable) {
  return servable.request_class(profile.signature)
      ->memory()
      .Of(inference::InputBytes(request, profile.rows));
}

}  // namespace

ShadowRunner::ShadowRunner(Shadows* shadows, scheduling::WorkerPool* workers)
    : shadows_(shadows), workers_(workers) {
  if (shadows->any()) thread_ = Thread("shadow versions", [this] { Run(); });
}

ShadowRunner::~ShadowRunner() { shadows_->Stop(); }

void ShadowRunner::Run() {
  LowerThisThreadsPriority(kLowestPriority);
  Answered answered;
  while (shadows_->Take(&answered)) {
    if (WaitUntilIdle(answered.since + kLongestWait)) {
      RunOne(answered);
    } else {
      shadows_->counts().CountNotRun(answered.shadow->name(), NotRun::kBusy);
    }
    answered = {};
  }
}

bool ShadowRunner::WaitUntilIdle(Clock::time_point until) {
  while (workers_->idle_workers() == 0 || workers_->queued() > 0) {
    if (Clock::now() >= until || !shadows_->Wait(kBetweenLooks)) return false;
  }
  return true;
}

void ShadowRunner::RunOne(const Answered& answered) {
  const Servable& servable = *answered.shadow;
  const Versions versions{servable.name(), answered.live_version, servable.version()};
  scheduling::WorkerPool::Share share;
  bool has_memory = true;
  Drift drift;
  const Status status = WithinMemory([&] {
    DecodedRequest request;
    if (Status read = Read(answered, &request); !read.ok()) return read;
    engine::PlanPtr plan;
    Status planned = servable.model().Plan(request, servable.batch_rules(), &plan);
    if (!planned.ok()) return planned;
    const int64_t bytes = BytesOfRun(request, plan->profile, servable);
    has_memory = workers_->Reserve({bytes, {}}, &share) == RunMemory::Answer::kYes;
    if (!has_memory) return OkStatus();
    std::unique_ptr<engine::Outputs> outputs;
    Status run = servable.model().RunWithoutStates(*plan, &outputs);
    if (run.ok()) drift = Compare(answered.outputs.columns(), outputs->columns());
    return run;
  });
  if (!status.ok()) {
    NoteFailure(versions, status);
  } else if (!has_memory) {
    shadows_->counts().CountNotRun(versions.model, NotRun::kNoMemory);
  } else {
    shadows_->counts().CountCompared(versions, drift);
  }
}

void ShadowRunner::NoteFailure(const Versions& versions, const Status& status) {
  shadows_->counts().CountFailed(versions, status);
  ++failed_since_log_;
  const Clock::time_point now = Clock::now();
  if (now < next_log_) return;
  LogWarning("shadow version " + std::to_string(versions.shadow) + " of model \"" + versions.model +
                 "\" failed where version " + std::to_string(versions.live) +
                 " answered: " + status.message + " (" + std::to_string(failed_since_log_) +
                 " failed since the last such line)",
             {versions.model, versions.shadow});
  next_log_ = now + kBetweenLogs;
  failed_since_log_ = 0;
}

}  // namespace colcast::shadow
