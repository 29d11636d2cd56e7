#include "server/shadow/shadows.h"

#include <algorithm>
#include <utility>

#include "server/base/draw.h"
#include "server/base/log.h"
#include "server/inference/input_bytes.h"

namespace colcast::shadow {

using inference::Servable;

Shadows::Shadows(Options options, FindServable find)
    : options_(std::move(options)), find_(std::move(find)) {
  for (const ShadowVersion& version : options_.versions) versions_[version.spec.name] = version;
}

std::shared_ptr<const Servable> Shadows::Draw(const Servable& live) {
  const auto found = versions_.find(live.name());
  if (found == versions_.end() || !colcast::Draw(found->second.share)) return nullptr;
  std::shared_ptr<const Servable> shadow;
  if (!find_(found->second.spec, &shadow).ok()) {
    counts_.CountNotRun(live.name(), NotRun::kNotServed);
    return nullptr;
  }
  if (shadow->version() == live.version()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.size() < options_.max_queued_requests) return shadow;
  counts_.CountNotRun(live.name(), NotRun::kQueueFull);
  return nullptr;
}

void Shadows::Add(std::shared_ptr<const Servable> shadow, const Servable& live,
                  const Bytes& request, const std::vector<OutputColumn>& outputs) {
  if (std::all_of(outputs.begin(), outputs.end(),
                  [](const OutputColumn& output) { return CountOf(output) == 0; })) {
    return;
  }
  Answered answered;
  const Status copied = WithinMemory([&] {
    answered = {std::move(shadow), live.version(), request.ToString(), KeptOutputs(outputs),
                scheduling::Clock::now()};
    return OkStatus();
  });
  if (!copied.ok()) return counts_.CountNotRun(live.name(), NotRun::kNoMemory);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() < options_.max_queued_requests &&
        request.size() <= options_.max_queued_bytes - queued_bytes_) {
      queued_bytes_ += request.size();
      queue_.push_back(std::move(answered));
      changed_.notify_one();
      return;
    }
  }
  counts_.CountNotRun(live.name(), NotRun::kQueueFull);
}

bool Shadows::Take(Answered* answered) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  });
  if (stopping_) return false;
  *answered = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= answered->request.size();
  return true;
}

bool Shadows::Wait(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto until = scheduling::Clock::now() + time;
  while (!stopping_ && changed_.wait_until(lock, until) == std::cv_status::no_timeout) {
  }
  return !stopping_;
}

void Shadows::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

namespace {

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
