#include "server/scheduling/worker_pool.h"

#include <absl/cleanup/cleanup.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

namespace colcast::scheduling {
namespace {

// This many waiting requests per worker suffice for ordering and joining.
constexpr int kEnoughPerWorker = 16;

void NameThisThread(const std::string& name) {
  constexpr size_t kLongestName = 15;  // Linux's limit
  pthread_setname_np(pthread_self(), name.substr(0, kLongestName).c_str());
}

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)),
      memory_(options_.memory),
      long_runs_({options_.num_workers - 1}),
      short_requests_(options_.longest_slice, options_.long_request_nice > 0, options_.now),
      idle_(options_.events),
      long_({options_.num_workers, options_.max_queued_requests, options_.long_request_nice,
             options_.now}),
      queue_(options_.max_queued_requests, [this](const RunNeeds& needs) {
        return memory_.MayRun(needs.bytes) && (short_requests_.MayTakeLastWorker(needs.worker) ||
                                               (options_.num_workers > 1 && long_runs_.MayRun(1)));
      }) {
  absl::Cleanup stop = [this] { Stop(); };
  for (int i = 0; i < options_.num_workers; ++i) {
    const std::string name = options_.thread_name + "_" + std::to_string(i);
    workers_.emplace_back(name, [this, i, has_run = false]() mutable { Work(i, &has_run); });
    if (long_.has_threads())
      workers_.emplace_back(name + " of long requests", [this, i] { WorkOnLong(i); });
  }
  std::move(stop).Cancel();
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Stop() {
  std::vector<Job*> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    left = queue_.TakeAll();
    for (Job* const job : long_.queue().TakeAll()) left.push_back(job);
    idle_.WakeAll();
    long_.WakeAll();
  }
  DropAll(left, DropReason::kShutdown);
}

void WorkerPool::Submit(Job* job) {
  JobProfile profile;
  const bool full = num_queued_.load(std::memory_order_relaxed) >= options_.max_queued_requests;
  if (!full && (options_.describe_all || idle_.count() == 0)) {
    job->Describe(&profile);
    profile.client = job->client();
  }
  std::vector<Job*> expired;
  std::optional<DropReason> refused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = options_.now();
    if (queued() >= options_.max_queued_requests) {
      expired = queue_.TakeExpired(now);
      for (Job* const late : long_.queue().TakeExpired(now)) expired.push_back(late);
      NoteQueued();
    }
    if (stopping_) {
      refused = DropReason::kShutdown;
    } else if (queued() >= options_.max_queued_requests) {
      refused = DropReason::kQueueFull;
    } else {
      refused = queue_.Add(job, std::move(profile), now);
    }
    NoteQueued();
    if (!refused) idle_.WakeOne();
  }
  if (refused) Drop(job, *refused);
  DropAll(expired, DropReason::kDeadlineExceeded);
}

void WorkerPool::TakeCompanions(const JobProfile& profile, std::vector<Taken>* companions) {
  if (queued() == 0) return;
  std::vector<Job*> expired;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = options_.now();
    expired = queue_.TakeExpired(now);
    queue_.TakeCompanions(profile, now, FreeWorkers() + 1, companions);
    NoteQueued();
  }
  DropAll(expired, DropReason::kDeadlineExceeded);
  DropEnded(companions);
}

// REQUIRES the lock.
void WorkerPool::NoteQueued() {
  num_queued_.store(queue_.requests() + long_.queue().requests(), std::memory_order_relaxed);
}

void WorkerPool::WaitForWork(std::unique_lock<std::mutex>* lock) {
  while (!stopping_) {
    const Clock::time_point now = options_.now();
    const Clock::time_point ready = queue_.ReadyAt(now);
    if (ready <= now) return;
    long_.WakeOneForWork();
    idle_.Wait(lock, ready == Clock::time_point::max() ? Clock::duration::max() : ready - now);
  }
}

// `*has_run` survives an exception in a job, after which the thread calls Work() again.
void WorkerPool::Work(int number, bool* has_run) {
  NameThisThread(options_.thread_name + "_" + std::to_string(number));
  std::vector<Taken> companions;
  for (;;) {
    std::vector<Job*> expired;
    Taken next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (std::exchange(*has_run, false)) --num_running_;
      WaitForWork(&lock);
      // Skipped if enough requests wait: reading more than workers can run would leave no time to
      // run them. Other threads that poll continue to read.
      if (queued() < kEnoughPerWorker * options_.num_workers) idle_.HandleEvents(&lock);
      if (stopping_) {
        idle_.WakeAll();
        return;
      }
      const Clock::time_point now = options_.now();
      expired = queue_.TakeExpired(now);
      *has_run = queue_.Take(now, FreeWorkers(), &next, &companions);
      if (*has_run) ++num_running_;
      NoteQueued();
      // Each worker wakes the next, because several wake-ups may have woken only one worker, and
      // because another worker must run a batch that is still filling when its timeout ends.
      if (queue_.ReadyAt(now) != Clock::time_point::max()) idle_.WakeOne();
    }
    DropAll(expired, DropReason::kDeadlineExceeded);
    if (next.job != nullptr) RunTaken(next, &companions);
  }
}

void WorkerPool::WorkOnLong(int number) {
  NameThisThread(options_.thread_name + "_long_" + std::to_string(number));
  long_.BeginThread();
  std::vector<Taken> none;
  for (;;) {
    std::vector<Job*> expired;
    Taken next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      long_.Wait(&lock, idle_, stopping_);
      if (stopping_) return;
      const Clock::time_point now = options_.now();
      expired = long_.queue().TakeExpired(now);
      long_.Take(now, &next);
      NoteQueued();
    }
    DropAll(expired, DropReason::kDeadlineExceeded);
    if (next.job == nullptr) continue;
    const absl::Cleanup ended = [this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      long_.End();
      idle_.WakeOne();  // a waiting job can use the freed memory
    };
    RunTaken(next, &none);
  }
}

void WorkerPool::DropEnded(std::vector<Taken>* taken) {
  const Clock::time_point now = options_.now();
  const auto dropped = [&](const Taken& one) {
    if (one.job->cancelled()) {
      Drop(one.job, DropReason::kCancelled);
    } else if (one.job->deadline() <= now) {
      Drop(one.job, DropReason::kDeadlineExceeded);
    } else {
      return false;
    }
    return true;
  };
  taken->erase(std::remove_if(taken->begin(), taken->end(), dropped), taken->end());
}

void WorkerPool::RunTaken(Taken next, std::vector<Taken>* companions) {
  companions->insert(companions->begin(), next);
  DropEnded(companions);
  if (companions->empty()) return;
  next = companions->front();
  companions->erase(companions->begin());
  next.job->Run(next.waited, companions);
}

void WorkerPool::Drop(Job* job, DropReason reason) {
  if (job->CountsAsDropped()) {
    dropped_[static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  job->Drop(reason);
}

void WorkerPool::DropAll(const std::vector<Job*>& jobs, DropReason reason) {
  for (Job* const job : jobs) Drop(job, reason);
}

namespace {

// The idle workers to which this thread belongs while it waits for events. It will run the first
// job that an event submits to its pool, so that job wakes no other worker.
struct EventsComeHere {
  const IdleWorkers* of = nullptr;
  bool has_job = false;
};
thread_local EventsComeHere events_come_here;

// An EventSource without events: Poll() waits only for Wake() or the given time.
class OnlyWakes final : public EventSource {
 public:
  bool Poll(Clock::time_point until) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto woken = [this] { return woken_; };
    if (until == Clock::time_point::max()) {
      changed_.wait(lock, woken);
    } else if (until != Clock::time_point::min()) {
      changed_.wait_until(lock, until, woken);
    }
    return std::exchange(woken_, false);
  }
  void Wake() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace

IdleWorkers::IdleWorkers(EventSource* events)
    : only_jobs_(events == nullptr ? std::make_unique<OnlyWakes>() : nullptr),
      events_(events == nullptr ? only_jobs_.get() : events) {}

IdleWorkers::~IdleWorkers() = default;

void IdleWorkers::NoteCount() {
  count_.store(std::max(0, num_waiting_ - num_called_), std::memory_order_relaxed);
}

void IdleWorkers::WakeOne() {
  if (count() == 0) return;
  ++num_called_;
  NoteCount();
  if (events_come_here.of == this && !events_come_here.has_job) {
    events_come_here.has_job = true;
  } else {
    events_->Wake();
  }
}

void IdleWorkers::Wait(std::unique_lock<std::mutex>* lock, Clock::duration wait) {
  ++num_waiting_;
  NoteCount();
  lock->unlock();
  events_come_here = {this};
  bool woken = false;
  const absl::Cleanup back = [&] {  // also runs after an exception
    const bool has_job = std::exchange(events_come_here, {}).has_job;
    lock->lock();
    --num_waiting_;
    // Several Wake() calls may count as one. So the woken worker accounts for all of them, and
    // wakes others if more jobs remain.
    num_called_ = woken ? 0 : std::max(0, num_called_ - (has_job ? 1 : 0));
    NoteCount();
  };
  const bool forever = wait == Clock::duration::max();
  woken = events_->Poll(forever ? Clock::time_point::max() : Clock::now() + wait);
}

void IdleWorkers::HandleEvents(std::unique_lock<std::mutex>* lock) {
  if (count() > 0) return;
  lock->unlock();
  const bool woken = events_->Poll(Clock::time_point::min());
  lock->lock();
  if (!woken) return;
  // The wake-up was meant for an idle worker, but this worker takes the job instead.
  num_called_ = 0;
  NoteCount();
}

}  // namespace colcast::scheduling
