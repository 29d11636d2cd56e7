// WorkerPool's methods that reserve resources for runs or queue a job again: the next slice, or a
// job that waits for resources or for other jobs.
#include "server/scheduling/worker_pool.h"

namespace colcast::scheduling {

bool WorkerPool::AddUnlessStopping(absl::FunctionRef<void()> add) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  add();
  NoteQueued();
  return true;
}

bool WorkerPool::SubmitAgain(Job* job, Clock::duration waited) {
  if (queued() == 0 && !options_.describe_all) return false;
  JobProfile profile;
  job->Describe(&profile);
  if (!profile.MayJoin()) return false;
  if (queued() == 0 && profile.request_class->limits().timeout.count() == 0) return false;
  profile.client = job->client();
  const auto add = [&] { queue_.AddAgain(job, profile, options_.now() - waited); };
  if (!AddUnlessStopping(add)) Drop(job, DropReason::kShutdown);
  return true;
}

void WorkerPool::SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since,
                              Clock::duration cost) {
  const uint64_t client = slices.front()->client();
  const auto add = [&, gives_way = short_requests_.GivesWay(cost)] {
    if (gives_way) {
      // Not added as a slice, so that the request counts as waiting until its first slice runs.
      JobProfile profile;
      profile.cost = cost;
      profile.client = client;
      long_.queue().AddAgain(slices.front(), profile, since);
      if (slices.size() > 1) {
        long_.queue().AddSlices({slices.begin() + 1, slices.end()}, client, since, cost);
      }
      for (size_t i = 0; i < slices.size(); ++i) long_.WakeOne();
    } else {
      queue_.AddSlices(slices, client, since, cost);
      // If the caller is a worker, it is about to become free and will run one slice itself.
      for (size_t i = ThisThreadGivesWay() ? 0 : 1; i < slices.size(); ++i) idle_.WakeOne();
    }
  };
  if (!AddUnlessStopping(add)) DropAll(slices, DropReason::kShutdown);
}

void WorkerPool::SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left) {
  const uint64_t client = slice->client();
  const auto add = [&, gives_way = short_requests_.GivesWay(left)] {
    (gives_way ? long_.queue() : queue_).AddSlices({slice}, client, options_.now(), cost);
    if (gives_way) {
      long_.WakeOne();
    } else if (ThisThreadGivesWay()) {
      idle_.WakeOne();
    }
  };
  if (!AddUnlessStopping(add)) Drop(slice, DropReason::kShutdown);
}

RunBudget::Answer WorkerPool::Reserve(const RunNeeds& needs, Share* share) {
  const bool holds_worker = needs.worker.count() > 0 && !ThisThreadGivesWay();
  if (holds_worker && long_runs_.Reserve(1, &share->worker) != RunBudget::Answer::kYes &&
      !short_requests_.MayTakeLastWorker(needs.worker)) {
    return needs.bytes > memory_.max_bytes() ? RunBudget::Answer::kNever
                                             : RunBudget::Answer::kLater;
  }
  return memory_.Reserve(needs.bytes, &share->memory);
}

void WorkerPool::SubmitForLater(Job* job, const RunNeeds& needs, Clock::time_point since,
                                Clock::duration cost) {
  JobProfile profile;
  profile.cost = cost;
  profile.client = job->client();
  profile.needs = needs;
  // On an extra thread, the run does not occupy a worker, so it waits only for memory.
  const bool beside = long_.has_threads() && needs.worker.count() > 0;
  if (beside) profile.needs.worker = Clock::duration::zero();
  const auto add = [&] {
    const bool is_long = beside && memory_.MayRun(needs.bytes);
    (is_long ? long_.queue() : queue_).AddAgain(job, profile, since);
    if (is_long) {
      long_.WakeOne();
    } else {
      idle_.WakeOne();  // the resource may have become free meanwhile
    }
  };
  if (!AddUnlessStopping(add)) Drop(job, DropReason::kShutdown);
}

}  // namespace colcast::scheduling
