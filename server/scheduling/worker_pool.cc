#include "server/scheduling/worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "server/base/thread_priority.h"

namespace colcast::scheduling {
namespace {

// For so long after a short request others are expected.
constexpr std::chrono::seconds kShortRequestsLast(1);

// For what would hold the last worker: for so many times as long as that.
constexpr int kShortRequestsLastForLongRuns = 10;

// A slice that gives way to short requests may take so many times as long as one that they wait
// for: only other long ones wait for it, and what every slice repeats weighs less.
constexpr int kLongerIfItGivesWay = 4;

// So many requests for each worker are enough to choose from and to join.
constexpr int kEnoughPerWorker = 16;

thread_local bool this_thread_gives_way = false;
thread_local bool this_thread_is_nice = false;

// Whether an idle worker's thread handles events, and so takes the first job itself.
enum class EventsComeHere { kNo, kFirst, kAlso };
thread_local EventsComeHere events_come_here = EventsComeHere::kNo;

void NameThisThread(const std::string& name) {
  constexpr size_t kLongestName = 15;  // Linux's
  pthread_setname_np(pthread_self(), name.substr(0, kLongestName).c_str());
}

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)),
      memory_(options_.memory),
      long_runs_(options_.num_workers),
      long_queue_(options_.max_queued_requests),
      queue_(options_.max_queued_requests,
             [this](const RunNeeds& needs) {
               return memory_.MayRun(needs.bytes) &&
                      (MayTakeLastWorker(needs.worker) || long_runs_.HasPlace());
             }),
      last_short_request_(
          (Clock::time_point::min() + 2 * kShortRequestsLast).time_since_epoch().count()) {
  for (int i = 0; i < options_.num_workers; ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    if (HasThreadsForLong()) workers_.emplace_back([this, i] { WorkOnLong(i); });
  }
}

WorkerPool::~WorkerPool() {
  std::vector<Job*> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    left = queue_.TakeAll();
    for (Job* const job : long_queue_.TakeAll()) left.push_back(job);
    while (!idle_.empty()) WakeOne();
    if (options_.events != nullptr) options_.events->Wake();
    long_wakeup_.notify_all();
  }
  DropAll(left, DropReason::kShutdown);
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::Submit(Job* job) {
  JobProfile profile;
  const bool full = num_queued_.load(std::memory_order_relaxed) >= options_.max_queued_requests;
  if (!full && (options_.describe_all || idle_workers() == 0)) {
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
      for (Job* const late : long_queue_.TakeExpired(now)) expired.push_back(late);
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
    // Under the lock: a worker that wakes by itself may end, and its Idle with it.
    if (!refused) WakeOne();
  }
  if (refused) Drop(job, *refused);
  DropAll(expired, DropReason::kDeadlineExceeded);
}

bool WorkerPool::SubmitAgain(Job* job, Clock::duration waited) {
  if (queued() == 0 && !options_.describe_all) return false;
  JobProfile profile;
  job->Describe(&profile);
  if (!profile.MayJoin()) return false;
  if (queued() == 0 && profile.request_class->limits().timeout.count() == 0) return false;
  profile.client = job->client();
  bool accepted = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted) {
      queue_.AddAgain(job, profile, options_.now() - waited);
      NoteQueued();
    }
  }
  if (!accepted) Drop(job, DropReason::kShutdown);
  return true;
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

void WorkerPool::SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since,
                              Clock::duration cost) {
  bool accepted = false;
  const bool gives_way = GivesWay(cost);
  const uint64_t client = slices.front()->client();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted && gives_way) {
      // Until the first of them runs, the request waits, and counts as one that does.
      JobProfile profile;
      profile.cost = cost;
      profile.client = client;
      long_queue_.AddAgain(slices.front(), profile, since);
      if (slices.size() > 1) {
        long_queue_.AddSlices({slices.begin() + 1, slices.end()}, client, since, cost);
      }
      NoteQueued();
      for (size_t i = 0; i < slices.size(); ++i) long_wakeup_.notify_one();
    } else if (accepted) {
      queue_.AddSlices(slices, client, since, cost);
      // The caller is free for one, if it is a worker.
      for (size_t i = ThisThreadGivesWay() ? 0 : 1; i < slices.size(); ++i) WakeOne();
    }
  }
  if (!accepted) DropAll(slices, DropReason::kShutdown);
}

void WorkerPool::SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left) {
  bool accepted = false;
  const bool gives_way = GivesWay(left);
  const uint64_t client = slice->client();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted) {
      (gives_way ? long_queue_ : queue_).AddSlices({slice}, client, options_.now(), cost);
      if (gives_way) {
        long_wakeup_.notify_one();
      } else if (ThisThreadGivesWay()) {
        WakeOne();
      }
    }
  }
  if (!accepted) Drop(slice, DropReason::kShutdown);
}

RunMemory::Answer WorkerPool::Reserve(const RunNeeds& needs, Share* share) {
  const bool holds_worker = needs.worker.count() > 0 && !ThisThreadGivesWay();
  if (holds_worker && !long_runs_.Begin(MayTakeLastWorker(needs.worker), &share->worker)) {
    return needs.bytes > memory_.max_bytes() ? RunMemory::Answer::kNever
                                             : RunMemory::Answer::kLater;
  }
  return memory_.Reserve(needs.bytes, &share->memory);
}

void WorkerPool::SubmitForLater(Job* job, const RunNeeds& needs, Clock::time_point since,
                                Clock::duration cost) {
  JobProfile profile;
  profile.cost = cost;
  profile.client = job->client();
  profile.needs = needs;
  // There it does not need a worker; on the way, memory only.
  const bool beside = HasThreadsForLong() && needs.worker.count() > 0;
  if (beside) profile.needs.worker = Clock::duration::zero();
  bool accepted = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted) {
      const bool is_long = beside && memory_.MayRun(needs.bytes);
      (is_long ? long_queue_ : queue_).AddAgain(job, profile, since);
      NoteQueued();
      if (is_long) {
        long_wakeup_.notify_one();
      } else {
        WakeOne();  // what it needs may have been given back a moment ago
      }
    }
  }
  if (!accepted) Drop(job, DropReason::kShutdown);
}

bool WorkerPool::ShortRequestsCome(Clock::duration within) const {
  const Clock::time_point last{
      Clock::duration(last_short_request_.load(std::memory_order_relaxed))};
  return last + within >= options_.now();
}

bool WorkerPool::GivesWay(Clock::duration cost) const {
  return options_.long_request_nice > 0 && cost > options_.longest_slice &&
         ShortRequestsCome(kShortRequestsLast);
}

bool WorkerPool::HasThreadsForLong() const {
  return options_.long_request_nice > 0 || options_.num_workers == 1;
}

bool WorkerPool::MayTakeLastWorker(Clock::duration time) const {
  return time.count() == 0 || !ShortRequestsCome(kShortRequestsLastForLongRuns * time);
}

bool WorkerPool::ThisThreadGivesWay() { return this_thread_gives_way; }

bool WorkerPool::ThisThreadIsNice() { return this_thread_is_nice; }

SliceNeeds WorkerPool::NeedsOf(Clock::duration cost) const {
  SliceNeeds needs;
  needs.idle_workers =
      std::max(0, idle_workers() - num_long_running_.load(std::memory_order_relaxed));
  if (GivesWay(cost)) {
    needs.longest = kLongerIfItGivesWay * options_.longest_slice;
  } else if (ShortRequestsCome(kShortRequestsLast)) {
    needs.longest = options_.longest_slice;
  }
  return needs;
}

void WorkerPool::NoteShortRequest() {
  last_short_request_.store(options_.now().time_since_epoch().count(), std::memory_order_relaxed);
}

// With the lock held, as are all that follow.
void WorkerPool::NoteQueued() {
  num_queued_.store(queue_.requests() + long_queue_.requests(), std::memory_order_relaxed);
}

void WorkerPool::NoteIdle() {
  const int idle = options_.events == nullptr ? static_cast<int>(idle_.size())
                                              : std::max(0, num_waiting_ - num_called_);
  num_idle_.store(idle, std::memory_order_relaxed);
}

void WorkerPool::WakeOne() {
  if (options_.events != nullptr) {
    if (idle_workers() == 0) return;
    ++num_called_;
    NoteIdle();
    if (events_come_here == EventsComeHere::kFirst) {
      events_come_here = EventsComeHere::kAlso;
    } else {
      options_.events->Wake();
    }
    return;
  }
  if (idle_.empty()) return;
  Idle* const last = idle_.back();
  idle_.pop_back();
  NoteIdle();
  last->woken = true;
  last->wakeup.notify_one();
}

void WorkerPool::WaitForWork(std::unique_lock<std::mutex>* lock, Idle* idle) {
  while (!stopping_) {
    const Clock::time_point now = options_.now();
    const Clock::time_point ready = queue_.ReadyAt(now);
    if (ready <= now) return;
    if (options_.events != nullptr) {
      WaitForEvents(lock, ready);
      continue;
    }
    idle->woken = false;
    idle_.push_back(idle);
    NoteIdle();
    if (long_queue_.FirstInLine() != Clock::time_point::max()) long_wakeup_.notify_one();
    if (ready == Clock::time_point::max()) {
      idle->wakeup.wait(*lock, [idle] { return idle->woken; });
    } else if (!idle->wakeup.wait_for(*lock, ready - now, [idle] { return idle->woken; })) {
      idle_.erase(std::find(idle_.begin(), idle_.end(), idle));
      NoteIdle();
    }
  }
}

void WorkerPool::WaitForEvents(std::unique_lock<std::mutex>* lock, Clock::time_point until) {
  ++num_waiting_;
  NoteIdle();
  if (long_queue_.FirstInLine() != Clock::time_point::max()) long_wakeup_.notify_one();
  lock->unlock();
  events_come_here = EventsComeHere::kFirst;
  const bool woken = options_.events->Poll(until);
  const bool has_job = events_come_here == EventsComeHere::kAlso;
  events_come_here = EventsComeHere::kNo;
  lock->lock();
  --num_waiting_;
  // One that is woken sees to all calls: it passes on what is left.
  num_called_ = woken ? 0 : std::max(0, num_called_ - (has_job ? 1 : 0));
  NoteIdle();
}

// What has come beside it: what may go before what waits, or be joined with it. Not while others
// are idle, who see to it; and not where enough waits: to read more than can be run would leave no
// time for that. Whoever else polls reads on, beside the workers.
void WorkerPool::HandleEvents(std::unique_lock<std::mutex>* lock) {
  const int enough = kEnoughPerWorker * options_.num_workers;
  if (options_.events == nullptr || idle_workers() > 0 || queued() >= enough) return;
  lock->unlock();
  const bool woken = options_.events->Poll(Clock::time_point::min());
  lock->lock();
  if (!woken) return;
  // Meant for one that waits, and as good here.
  num_called_ = 0;
  NoteIdle();
}

void WorkerPool::Work(int number) {
  NameThisThread(options_.thread_name + "_" + std::to_string(number));
  Idle idle;
  std::vector<Taken> companions;
  bool has_run = false;
  for (;;) {
    std::vector<Job*> expired;
    Taken next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (has_run) --num_running_;
      WaitForWork(&lock, &idle);
      HandleEvents(&lock);
      if (stopping_) {
        if (options_.events != nullptr) options_.events->Wake();
        return;
      }
      const Clock::time_point now = options_.now();
      expired = queue_.TakeExpired(now);
      has_run = queue_.Take(now, FreeWorkers(), &next, &companions);
      if (has_run) ++num_running_;
      NoteQueued();
      // Several calls may have woken one.
      if (options_.events != nullptr && queue_.ReadyAt(now) <= now) WakeOne();
      // What still waits for company had this worker to wait for it.
      const Clock::time_point ready = queue_.ReadyAt(now);
      if (ready > now && ready != Clock::time_point::max()) WakeOne();
    }
    DropAll(expired, DropReason::kDeadlineExceeded);
    if (next.job != nullptr) RunTaken(next, &companions);
  }
}

Clock::time_point WorkerPool::LongMayStartAt(Clock::time_point now) const {
  const Clock::time_point first = long_queue_.FirstInLine();
  if (first == Clock::time_point::max()) return first;
  const bool has_room = num_long_running_.load(std::memory_order_relaxed) < idle_workers();
  return has_room ? now : first;
}

void WorkerPool::WaitForLongWork(std::unique_lock<std::mutex>* lock) {
  while (!stopping_) {
    const Clock::time_point now = options_.now();
    const Clock::time_point start = LongMayStartAt(now);
    if (start <= now) return;
    if (start == Clock::time_point::max()) {
      long_wakeup_.wait(*lock);
    } else {
      long_wakeup_.wait_for(*lock, start - now);
    }
  }
}

void WorkerPool::WorkOnLong(int number) {
  NameThisThread(options_.thread_name + "_long_" + std::to_string(number));
  this_thread_is_nice = options_.long_request_nice > 0;
  if (this_thread_is_nice) LowerThisThreadsPriority(options_.long_request_nice);
  this_thread_gives_way = true;
  std::vector<Taken> none;
  for (;;) {
    std::vector<Job*> expired;
    Taken next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      WaitForLongWork(&lock);
      if (stopping_) return;
      const Clock::time_point now = options_.now();
      expired = long_queue_.TakeExpired(now);
      if (long_queue_.Take(now, options_.num_workers, &next, &none)) ++num_long_running_;
      NoteQueued();
      if (long_queue_.FirstInLine() != Clock::time_point::max()) long_wakeup_.notify_one();
    }
    DropAll(expired, DropReason::kDeadlineExceeded);
    if (next.job == nullptr) continue;
    RunTaken(next, &none);
    std::lock_guard<std::mutex> lock(mutex_);
    --num_long_running_;
    WakeOne();  // something may have waited for its memory
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

}  // namespace colcast::scheduling
