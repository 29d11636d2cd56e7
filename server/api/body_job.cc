#include <algorithm>
#include <vector>

#include "server/api/call.h"
#include "server/base/machine.h"
#include "server/base/thread.h"

namespace colcast::api {
namespace {

using scheduling::Clock;

// A body larger than this after decompression would occupy a worker for longer than most models do.
constexpr size_t kMostForWorkers = 512 << 10;

// Approximate speed of reading a body. The readers' queue runs short bodies first.
constexpr size_t kBytesPerMicrosecond = 50;

void LowerPriorityOnce() {
  thread_local const bool lowered = [] {
    LowerThisThreadsPriority();
    return true;
  }();
  static_cast<void>(lowered);
}

// Reads a call's body, then passes the call on: a reader submits it to the workers; a worker runs
// it immediately or, if it may run in a batch with others, requeues it in its original place.
// Deletes itself afterwards.
class BodyJob final : public scheduling::Job {
 public:
  BodyJob(size_t max_bytes, Call* call)
      : max_bytes_(max_bytes), codec_(call->codec()), call_(call) {}

  void Submit(bool to_readers) {
    by_reader_ = to_readers;
    const Backend& backend = call_->backend();
    (to_readers ? backend.readers : backend.workers)->Submit(this);
  }

  Clock::time_point deadline() const override { return call_->deadline(); }
  bool cancelled() const override { return call_->cancelled(); }
  uint64_t client() const override { return call_->client(); }
  void Describe(scheduling::JobProfile* profile) override {
    if (by_reader_) {
      profile->cost = std::chrono::microseconds(codec_.body_bytes() / kBytesPerMicrosecond);
    }
  }
  void Drop(scheduling::DropReason reason) override { End(DropStatus(reason)); }

  void Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) override {
    call_->call_record().queue_wait = waited;
    if (by_reader_) LowerPriorityOnce();
    const Clock::time_point start = Clock::now();
    const bool may_be_long = codec_.is_compressed() && !by_reader_ && max_bytes_ > kMostForWorkers;
    bool inflates_too_far = false;
    const Status status =
        codec_.ReadBody(call_, may_be_long ? kMostForWorkers : max_bytes_, &inflates_too_far);
    if (inflates_too_far && may_be_long) return Submit(/*to_readers=*/true);
    if (!status.ok()) return End(status);
    const std::unique_ptr<BodyJob> gone(this);
    scheduling::WorkerPool* const workers = call_->backend().workers;
    if (by_reader_) {
      Origin& origin = codec_.origin();
      if (origin.is_deadline_ours) origin.deadline += Clock::now() - start;
      return workers->Submit(call_);
    }
    if (!workers->SubmitAgain(call_, waited)) call_->Run(waited, companions);
  }

 private:
  void End(const Status& status) {
    call_->Answer(status);
    delete this;
  }

  const size_t max_bytes_;
  Codec& codec_;
  Call* const call_;
  bool by_reader_ = false;
};

}  // namespace

scheduling::WorkerPool::Options ReaderOptions() {
  scheduling::WorkerPool::Options options;
  options.num_workers = std::max(1, AvailableCores() / 2);
  options.thread_name = "body_reader";
  return options;
}

void ReadAndRun(size_t max_bytes, Call* call) {
  const bool is_long = call->codec().body_bytes() > kMostForWorkers;
  (new BodyJob(max_bytes, call))->Submit(is_long);
}

}  // namespace colcast::api
