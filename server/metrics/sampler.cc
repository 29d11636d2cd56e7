#include "server/metrics/sampler.h"

#include <chrono>

#include "server/metrics/process_usage.h"

namespace colcast::metrics {

Sampler::Sampler(const Metrics* metrics) : metrics_(metrics), thread_([this] { Run(); }) {}

Sampler::~Sampler() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_requested_.notify_all();
  thread_.join();
}

void Sampler::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  do {
    recent_.Add(std::chrono::steady_clock::now(), metrics_->Requests(),
                ReadProcessUsage().cpu_seconds);
  } while (!stop_requested_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; }));
}

}  // namespace colcast::metrics
