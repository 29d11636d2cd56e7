#include "server/scheduling/long_requests.h"

#include <chrono>
#include <utility>

#include "server/base/thread.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::scheduling {
namespace {

// After a short request, more are expected for this long.
constexpr std::chrono::seconds kShortRequestsLast(1);

// A run may occupy the last worker only if no short request ran for this multiple of its time.
constexpr int kShortRequestsLastForLongRuns = 10;

// A slice that gives way to short requests may be longer by this factor: only other long requests
// wait for it, and longer slices reduce the total fixed cost.
constexpr int kLongerIfItGivesWay = 4;

thread_local bool this_thread_gives_way = false;
thread_local bool this_thread_is_nice = false;

}  // namespace

bool ThisThreadGivesWay() { return this_thread_gives_way; }

bool ThisThreadIsNice() { return this_thread_is_nice; }

ShortRequests::ShortRequests(Clock::duration longest_slice, bool may_give_way,
                             std::function<Clock::time_point()> now)
    : longest_slice_(longest_slice),
      may_give_way_(may_give_way),
      now_(std::move(now)),
      last_((Clock::time_point::min() + 2 * kShortRequestsLast).time_since_epoch().count()) {}

void ShortRequests::Note() {
  last_.store(now_().time_since_epoch().count(), std::memory_order_relaxed);
}

bool ShortRequests::RanWithin(Clock::duration time) const {
  const Clock::time_point last{Clock::duration(last_.load(std::memory_order_relaxed))};
  return last + time >= now_();
}

bool ShortRequests::GivesWay(Clock::duration cost) const {
  return may_give_way_ && cost > longest_slice_ && RanWithin(kShortRequestsLast);
}

bool ShortRequests::MayTakeLastWorker(Clock::duration time) const {
  return time.count() == 0 || !RanWithin(kShortRequestsLastForLongRuns * time);
}

Clock::duration ShortRequests::LongestSlice(Clock::duration cost) const {
  if (GivesWay(cost)) return kLongerIfItGivesWay * longest_slice_;
  return RanWithin(kShortRequestsLast) ? longest_slice_ : Clock::duration::max();
}

LongRequests::LongRequests(Options options)
    : options_(std::move(options)), queue_(options_.max_queued_requests) {}

void LongRequests::BeginThread() const {
  this_thread_is_nice = options_.nice > 0;
  if (this_thread_is_nice) LowerThisThreadsPriority(options_.nice);
  this_thread_gives_way = true;
}

void LongRequests::WakeOneForWork() {
  if (queue_.FirstInLine() != Clock::time_point::max()) wakeup_.notify_one();
}

Clock::time_point LongRequests::MayStartAt(Clock::time_point now, int idle_workers) const {
  const Clock::time_point first = queue_.FirstInLine();
  if (first == Clock::time_point::max()) return first;
  return running() < idle_workers ? now : first;
}

void LongRequests::Wait(std::unique_lock<std::mutex>* lock, const IdleWorkers& idle,
                        const bool& stopping) {
  while (!stopping) {
    const Clock::time_point now = options_.now();
    const Clock::time_point start = MayStartAt(now, idle.count());
    if (start <= now) return;
    if (start == Clock::time_point::max()) {
      wakeup_.wait(*lock);
    } else {
      wakeup_.wait_for(*lock, start - now);
    }
  }
}

bool LongRequests::Take(Clock::time_point now, Taken* next) {
  std::vector<Taken> none;
  const bool taken = queue_.Take(now, options_.num_workers, next, &none);
  if (taken) ++running_;
  WakeOneForWork();
  return taken;
}

}  // namespace colcast::scheduling
