#include "server/tables/poll_thread.h"

#include <algorithm>
#include <utility>

#include "server/base/thread.h"

namespace colcast::tables {

std::shared_ptr<PollThread> PollThread::Shared() {
  static std::mutex mutex;
  static std::weak_ptr<PollThread> shared;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<PollThread> found = shared.lock();
  if (found == nullptr) shared = found = std::make_shared<PollThread>();
  return found;
}

PollThread::~PollThread() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

Status PollThread::Add(std::chrono::milliseconds wait, std::function<void()> poll, Job* job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!thread_.joinable()) {
    Status status = StartThread(
        "polling of tables", [this] { Run(); }, &thread_);
    if (!status.ok()) return status;
  }
  polled_.push_back({wait, std::move(poll), Clock::now() + wait});
  *job = Job(&polled_.back(), [this](void* polled) { Remove(static_cast<Polled*>(polled)); });
  changed_.notify_all();
  return OkStatus();
}

void PollThread::PollNow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Polled& one : polled_) one.next = Clock::now();
  changed_.notify_all();
}

void PollThread::Run() {
  LowerThisThreadsPriority();
  std::unique_lock<std::mutex> lock(mutex_);
  running_ = nullptr;  // an exception in a polled function restarts Run()
  while (!stop_) {
    const auto first =
        std::min_element(polled_.begin(), polled_.end(),
                         [](const Polled& a, const Polled& b) { return a.next < b.next; });
    changed_.notify_all();
    if (first == polled_.end()) {
      changed_.wait(lock);
    } else if (first->next > Clock::now()) {
      const Clock::time_point next = first->next;  // `first` may be removed during the wait
      changed_.wait_until(lock, next);
    } else {
      first->next = Clock::now() + first->wait;
      running_ = &*first;
      lock.unlock();
      first->poll();
      lock.lock();
      running_ = nullptr;
    }
  }
}

void PollThread::Remove(const Polled* polled) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return running_ != polled; });
  polled_.remove_if([&](const Polled& one) { return &one == polled; });
}

}  // namespace colcast::tables
