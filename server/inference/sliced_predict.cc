// Runs a large request in slices of its candidates, on several workers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/inference/run.h"
#include "server/scheduling/cost.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using scheduling::CostEstimate;
using scheduling::RunBudget;
using scheduling::WorkerPool;

// The class's cost line, converted to rows of this request. The class learns by size, and each
// request has its own size per row.
CostEstimate::Line LineOf(const AdmittedRequest& admitted) {
  CostEstimate::Line line = admitted.request_class->cost().line();
  line.per_row *= static_cast<double>(admitted.profile().size) / admitted.profile().rows;
  return line;
}

// The most rows per slice for which all workers can run slices at once within the memory limit.
int64_t MostRows(const AdmittedRequest& admitted, WorkerPool* workers) {
  const int64_t most = admitted.request_class->limits().max_slice_rows;
  const int64_t bytes = NeedsOf(admitted).bytes;
  const int64_t share = workers->options().memory.max_bytes / workers->options().num_workers;
  if (bytes <= share) return most;
  const double part = static_cast<double>(share) / static_cast<double>(bytes);
  return std::clamp<int64_t>(static_cast<int64_t>(part * admitted.profile().rows), 1, most);
}

// A request that runs in slices. It starts with at most one slice per worker. A worker that has run
// a slice takes the next one, whose size depends on the current load.
class SlicedPredict {
 public:
  SlicedPredict(AdmittedRequest admitted, std::unique_ptr<engine::Slices> slices,
                WorkerPool* workers)
      : admitted_(std::move(admitted)), slices_(std::move(slices)), workers_(workers) {}

  scheduling::Job* job() const { return admitted_.member->job(); }
  uint64_t client() const { return client_; }
  bool has_ended() const { return ended_.load(std::memory_order_relaxed); }

  // Takes the first slices. Call before any of them runs.
  std::vector<int> TakeFirst(int64_t rows) {
    std::vector<int> taken;
    while (static_cast<int>(taken.size()) < workers_->options().num_workers &&
           slices_->rows_left() > 0) {
      taken.push_back(slices_->Take(rows));
    }
    running_ = at_once_ = static_cast<int>(taken.size());
    return taken;
  }

  // Runs a slice and returns the next one, or -1 if no rows remain.
  int Run(int slice) {
    MeasuredRun run(admitted_.request_class);
    const Status status = WithinMemory([&] {
      slices_->Run(slice);
      return OkStatus();
    });
    if (status.ok()) run.Learn(SizeOf(slices_->rows(slice)), InputBytesOf(slice));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++admitted_.member->record()->slices;
    }
    if (!status.ok()) Fail(status);
    return has_ended() ? -1 : TakeNext();
  }

  RunBudget::Answer Reserve(int slice, WorkerPool::Share* share) {
    const RunBudget::Answer answer = workers_->Reserve(NeedsOf(slice), share);
    if (answer == RunBudget::Answer::kNever) Fail(Refusal(admitted_, *workers_));
    return answer;
  }
  scheduling::RunNeeds NeedsOf(int slice) const {
    return {admitted_.request_class->memory().Of(InputBytesOf(slice)), {}};
  }

  // The estimated cost of a slice. CostOfTheRest() includes all rows that are not yet in slices.
  Clock::duration CostOf(int slice) const { return CostOfRows(slices_->rows(slice)); }
  Clock::duration CostOfTheRest(int slice) const {
    return CostOfRows(slices_->rows(slice) + slices_->rows_left());
  }

  bool CountsAsDropped() { return !counted_.exchange(true, std::memory_order_relaxed); }

  void Drop(scheduling::DropReason reason) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!dropped_) dropped_ = reason;
    }
    ended_ = true;
    End();
  }

  // Called once for each of the first slices, when it and its successors have run. The last of
  // these calls answers the request.
  void End() {
    if (running_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::unique_ptr<engine::Outputs> outputs;
    Status status = failed_;
    if (dropped_) {
      status = DropStatus(*dropped_);
    } else if (status.ok()) {
      status = WithinMemory([&] { return slices_->Join(&outputs); });
    }
    slices_.reset();
    if (!has_ended() && !status.ok() && status.code != StatusCode::kResourceExhausted) {
      admitted_.whole = true;
      return RunAlone(std::move(admitted_), workers_);
    }
    metrics::CallRecord& record = *admitted_.member->record();
    record.run_start = start_;
    record.runtime = Clock::now() - start_;
    admitted_.member->Finish(status, outputs.get());
  }

 private:
  void Fail(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = status;
    ended_ = true;
  }
  // The share of `whole` that belongs to `rows` rows.
  int64_t PartOf(int64_t whole, int64_t rows) const {
    return std::llround(static_cast<double>(whole) * rows / admitted_.profile().rows);
  }
  int64_t SizeOf(int64_t rows) const { return PartOf(admitted_.profile().size, rows); }
  int64_t InputBytesOf(int slice) const {
    return PartOf(admitted_.profile().input_bytes, slices_->rows(slice));
  }
  Clock::duration CostOfRows(int64_t rows) const {
    return admitted_.request_class->cost().Of(SizeOf(rows));
  }

  int TakeNext() {
    const int64_t left = slices_->rows_left();
    const scheduling::SliceNeeds needs = {at_once_ - 1,  // the other workers on this request
                                          workers_->short_requests().LongestSlice(CostOfRows(left)),
                                          MostRows(admitted_, workers_)};
    return slices_->Take(RowsPerSlice(left, LineOf(admitted_), needs));
  }

  AdmittedRequest admitted_;
  std::unique_ptr<engine::Slices> slices_;
  WorkerPool* const workers_;
  const uint64_t client_ = job()->client();
  const Clock::time_point start_ = Clock::now();
  int at_once_ = 0;
  std::atomic<int> running_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> counted_{false};
  std::mutex mutex_;
  std::optional<scheduling::DropReason> dropped_;
  Status failed_;  // set if a slice failed for lack of memory
};

// Runs a slice, then requeues itself for the next one.
class SliceJob final : public scheduling::Job {
 public:
  SliceJob(std::shared_ptr<SlicedPredict> whole, int slice, WorkerPool* workers)
      : whole_(std::move(whole)),
        slice_(slice),
        workers_(workers),
        deadline_(whole_->job()->deadline()) {}

  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return whole_->job()->cancelled(); }
  uint64_t client() const override { return whole_->client(); }
  void Run(Clock::duration waited, std::vector<scheduling::Taken>*) override {
    if (!whole_->has_ended()) {
      WorkerPool::Share share;
      const RunBudget::Answer answer = whole_->Reserve(slice_, &share);
      if (answer == RunBudget::Answer::kLater) {
        workers_->SubmitForLater(this, whole_->NeedsOf(slice_), Clock::now() - waited,
                                 whole_->CostOf(slice_));
        return;
      }
      if (answer == RunBudget::Answer::kYes) slice_ = whole_->Run(slice_);
    }
    if (whole_->has_ended() || slice_ < 0) {
      whole_->End();
      delete this;
    } else {
      workers_->SubmitNextSlice(this, whole_->CostOf(slice_), whole_->CostOfTheRest(slice_));
    }
  }
  void Drop(scheduling::DropReason reason) override {
    whole_->Drop(reason);
    delete this;
  }
  bool CountsAsDropped() override { return whole_->CountsAsDropped(); }

 private:
  const std::shared_ptr<SlicedPredict> whole_;
  int slice_;
  WorkerPool* const workers_;
  const Clock::time_point deadline_;
};

}  // namespace

bool RunBySlices(AdmittedRequest* admitted, WorkerPool* workers) {
  const Clock::duration cost = admitted->cost;
  const int64_t rows = admitted->profile().rows;
  const scheduling::SliceNeeds needs = {workers->idle_workers(),
                                        workers->short_requests().LongestSlice(cost),
                                        MostRows(*admitted, workers)};
  const int64_t slice = RowsPerSlice(rows, LineOf(*admitted), needs);
  if (slice >= rows) return false;
  const Clock::time_point since = Clock::now() - admitted->member->record()->queue_wait;
  const Servable& servable = admitted->member->servable();
  std::unique_ptr<engine::Slices> slices;
  const Status status = WithinMemory([&] {
    slices = servable.model().Split(admitted->plan());
    return OkStatus();
  });
  if (!status.ok() || slices == nullptr) return false;
  const auto whole =
      std::make_shared<SlicedPredict>(std::move(*admitted), std::move(slices), workers);
  std::vector<scheduling::Job*> jobs;
  for (const int first : whole->TakeFirst(slice)) {
    jobs.push_back(new SliceJob(whole, first, workers));
  }
  workers->SubmitSlices(jobs, since, cost);
  return true;
}

}  // namespace colcast::inference
