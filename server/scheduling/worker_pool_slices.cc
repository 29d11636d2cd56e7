// The WorkerPool methods that reserve resources for runs, and that queue slices and jobs waiting
// for resources.
#include "server/scheduling/worker_pool.h"

namespace colcast::scheduling {

void WorkerPool::SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since,
                              Clock::duration cost) {
  bool accepted = false;
  const bool gives_way = short_requests_.GivesWay(cost);
  const uint64_t client = slices.front()->client();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted && gives_way) {
      // Not added as a slice, so that the request counts as waiting until its first slice runs.
      JobProfile profile;
      profile.cost = cost;
      profile.client = client;
      long_.queue().AddAgain(slices.front(), profile, since);
      if (slices.size() > 1) {
        long_.queue().AddSlices({slices.begin() + 1, slices.end()}, client, since, cost);
      }
      NoteQueued();
      for (size_t i = 0; i < slices.size(); ++i) long_.WakeOne();
    } else if (accepted) {
      queue_.AddSlices(slices, client, since, cost);
      // If the caller is a worker, it is about to become free and will run one slice itself.
      for (size_t i = ThisThreadGivesWay() ? 0 : 1; i < slices.size(); ++i) idle_.WakeOne();
    }
  }
  if (!accepted) DropAll(slices, DropReason::kShutdown);
}

void WorkerPool::SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left) {
  bool accepted = false;
  const bool gives_way = short_requests_.GivesWay(left);
  const uint64_t client = slice->client();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted) {
      (gives_way ? long_.queue() : queue_).AddSlices({slice}, client, options_.now(), cost);
      if (gives_way) {
        long_.WakeOne();
      } else if (ThisThreadGivesWay()) {
        idle_.WakeOne();
      }
    }
  }
  if (!accepted) Drop(slice, DropReason::kShutdown);
}

RunMemory::Answer WorkerPool::Reserve(const RunNeeds& needs, Share* share) {
  const bool holds_worker = needs.worker.count() > 0 && !ThisThreadGivesWay();
  if (holds_worker &&
      !long_runs_.Begin(short_requests_.MayTakeLastWorker(needs.worker), &share->worker)) {
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
  // On an extra thread, the run does not occupy a worker, so it waits only for memory.
  const bool beside = long_.has_threads() && needs.worker.count() > 0;
  if (beside) profile.needs.worker = Clock::duration::zero();
  bool accepted = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted = !stopping_;
    if (accepted) {
      const bool is_long = beside && memory_.MayRun(needs.bytes);
      (is_long ? long_.queue() : queue_).AddAgain(job, profile, since);
      NoteQueued();
      if (is_long) {
        long_.WakeOne();
      } else {
        idle_.WakeOne();  // the resource may have become free meanwhile
      }
    }
  }
  if (!accepted) Drop(job, DropReason::kShutdown);
}

}  // namespace colcast::scheduling
