#include "server/shadow/shadows.h"

#include <algorithm>
#include <utility>

#include "server/base/draw.h"
#include "server/base/status.h"

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

}  // namespace colcast::shadow
