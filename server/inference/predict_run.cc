#include "server/inference/predict_run.h"

#include <time.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/base/out_of_memory.h"
#include "server/scheduling/piece_size.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using scheduling::RequestClass;
using scheduling::WorkerPool;

RequestClass* ClassOf(const PredictMember& member) {
  return member.servable().request_class(member.request().model_spec().signature_name);
}

// How long a run has kept its thread busy: where it gives way, without what interrupted it.
class BusyTime {
 public:
  Clock::duration Elapsed() const { return Now() - start_; }

 private:
  static Clock::duration Now() {
    if (!WorkerPool::ThisThreadGivesWay()) return Clock::now().time_since_epoch();
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  const Clock::duration start_ = Now();
};

// One request that was read, and what is known of it.
struct Reading {
  PredictMember* member = nullptr;
  RequestClass* of = nullptr;  // null if the model has no such signature
  engine::RequestProfile profile;
  Clock::duration cost{};  // as estimated; zero if nothing is known
  PredictStats stats;
};

// Nothing has been checked: a request may claim any number of rows.
engine::RequestProfile ProfileOf(const DecodedRequest& request, const Servable& servable) {
  engine::RequestProfile profile = servable.model().Profile(request, servable.batch_rules());
  profile.rows = std::clamp<int64_t>(profile.rows, 0, scheduling::JobProfile::kMaxRows);
  if (profile.size == 0) profile.size = profile.rows;
  return profile;
}

// As TensorFlow Serving's batching has it.
Status CheckRows(const engine::RequestProfile& profile, const RequestClass& of) {
  const int64_t most = of.limits().max_request_rows;
  if (profile.group == 0 || profile.rows <= most) return OkStatus();
  return InvalidArgument("Task size ", profile.rows, " is larger than maximum input batch size ",
                         most, " (max_batch_size)");
}

// Reads the request, or finishes it with its error.
bool Read(PredictMember* member, Clock::duration waited, Reading* reading) {
  reading->member = member;
  reading->stats.waited = waited;
  const Status status = WithinMemory([&] {
    Status read = member->Read();
    if (!read.ok()) return read;
    reading->of = ClassOf(*member);
    reading->profile = ProfileOf(member->request(), member->servable());
    if (reading->of == nullptr) return OkStatus();
    reading->cost = reading->of->cost().Of(reading->profile.size);
    return CheckRows(reading->profile, *reading->of);
  });
  if (!status.ok()) member->Finish(status, nullptr, reading->stats);
  return status.ok();
}

// `of` is null if the model has no such signature.
scheduling::JobProfile JobProfileOf(const engine::RequestProfile& known, RequestClass* of,
                                    Clock::duration cost) {
  return {of, known.group, known.group == 0 ? 0 : known.rows, cost};
}

// A request while its pieces run.
class DividedPredict {
 public:
  DividedPredict(Reading reading, std::unique_ptr<engine::Pieces> pieces, Clock::time_point start)
      : reading_(std::move(reading)),
        pieces_(std::move(pieces)),
        start_(start),
        left_(pieces_->count()) {}

  scheduling::Job* job() const { return reading_.member->job(); }

  void Run(int index, Clock::duration waited) {
    const BusyTime busy;
    const Status status = WithinMemory([&] {
      pieces_->Run(index);
      return OkStatus();
    });
    if (status.ok() && reading_.of != nullptr) {
      const double share = static_cast<double>(pieces_->rows(index)) / reading_.profile.rows;
      reading_.of->cost().Observe(std::llround(share * reading_.profile.size), busy.Elapsed());
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      reading_.stats.piece_waits.push_back(waited);
      if (!status.ok()) failed_ = status;
    }
    EndPiece();
  }

  bool CountsAsDropped() { return !counted_.exchange(true, std::memory_order_relaxed); }

  void Drop(scheduling::DropReason reason) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!dropped_) dropped_ = reason;
    }
    EndPiece();
  }

 private:
  void EndPiece() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::unique_ptr<engine::Outputs> outputs;
    Status status = failed_;
    if (dropped_) {
      status = DropStatus(*dropped_);
    } else if (status.ok()) {
      status = WithinMemory([&] { return pieces_->Join(&outputs); });
    }
    pieces_.reset();
    reading_.stats.runtime = Clock::now() - start_;
    reading_.member->Finish(status, outputs.get(), reading_.stats);
  }

  Reading reading_;
  std::unique_ptr<engine::Pieces> pieces_;
  const Clock::time_point start_;
  std::atomic<int> left_;
  std::atomic<bool> counted_{false};
  std::mutex mutex_;
  std::optional<scheduling::DropReason> dropped_;
  Status failed_;  // a piece that found no memory
};

class PieceJob final : public scheduling::Job {
 public:
  PieceJob(std::shared_ptr<DividedPredict> whole, int index)
      : whole_(std::move(whole)), index_(index), deadline_(whole_->job()->deadline()) {}

  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return whole_->job()->cancelled(); }
  void Run(Clock::duration waited, std::vector<scheduling::Taken>*) override {
    whole_->Run(index_, waited);
    delete this;
  }
  void Drop(scheduling::DropReason reason) override {
    whole_->Drop(reason);
    delete this;
  }
  bool CountsAsDropped() override { return whole_->CountsAsDropped(); }

 private:
  const std::shared_ptr<DividedPredict> whole_;
  const int index_;
  const Clock::time_point deadline_;
};

// False if the request is not to be cut; nothing has happened then.
bool RunInPieces(Reading* reading, WorkerPool* workers) {
  const Clock::duration cost = reading->cost;
  RequestClass& of = *reading->of;
  const int64_t rows = reading->profile.rows;
  scheduling::PieceNeeds needs = workers->NeedsOf(cost);
  needs.max_rows = of.limits().max_piece_rows;
  scheduling::CostEstimate::Line cost_of_rows = of.cost().line();
  cost_of_rows.per_row *= static_cast<double>(reading->profile.size) / rows;
  const int64_t piece = RowsPerPiece(rows, cost_of_rows, needs);
  if (piece >= rows) return false;
  const Clock::time_point start = Clock::now();
  PredictMember* const member = reading->member;
  std::unique_ptr<engine::Pieces> pieces;
  const Status divided = WithinMemory([&] {
    const engine::BatchRules& rules = member->servable().batch_rules();
    pieces = member->servable().model().Divide(member->request(), rules, piece);
    return OkStatus();
  });
  if (!divided.ok() || pieces == nullptr) return false;
  const int count = pieces->count();
  const Clock::time_point since = start - reading->stats.waited;
  const auto whole =
      std::make_shared<DividedPredict>(std::move(*reading), std::move(pieces), start);
  std::vector<scheduling::Job*> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(new PieceJob(whole, i));
  workers->SubmitPieces(jobs, since, cost);
  return true;
}

// Whether it may run in pieces. Where runs are filled up to allowed sizes, only if it has to.
bool MayBeCut(const Reading& reading) {
  const engine::BatchRules& rules = reading.member->servable().batch_rules();
  return reading.profile.divisible && (rules.allowed_batch_sizes.empty() ||
                                       reading.profile.rows > reading.of->limits().max_piece_rows);
}

Status RunOne(const PredictMember& member, std::unique_ptr<engine::Outputs>* outputs) {
  const engine::Model& model = member.servable().model();
  const engine::BatchRules& rules = member.servable().batch_rules();
  if (rules.allowed_batch_sizes.empty()) return model.Predict(member.request(), outputs);
  std::vector<engine::BatchMember> alone(1);
  alone[0].request = &member.request();
  model.PredictBatch(rules, &alone);
  *outputs = std::move(alone[0].outputs);
  return std::move(alone[0].status);
}

void RunWhole(Reading reading) {
  PredictMember* const member = reading.member;
  const Clock::time_point start = Clock::now();
  const BusyTime busy;
  std::unique_ptr<engine::Outputs> outputs;
  const Status status = WithinMemory([&] { return RunOne(*member, &outputs); });
  reading.stats.runtime = Clock::now() - start;
  if (status.ok() && reading.of != nullptr) {
    reading.of->cost().Observe(reading.profile.size, busy.Elapsed());
  }
  reading.stats.run_requests = 1;
  reading.stats.run_rows = reading.profile.rows;
  member->Finish(status, outputs.get(), reading.stats);
}

void RunAlone(Reading reading, WorkerPool* workers);

// A request that has been read, and gives way from then on.
class GivingWayJob final : public scheduling::Job {
 public:
  GivingWayJob(Reading reading, WorkerPool* workers)
      : reading_(std::move(reading)), workers_(workers) {}

  Clock::time_point deadline() const override { return reading_.member->job()->deadline(); }
  bool cancelled() const override { return reading_.member->job()->cancelled(); }
  void Run(Clock::duration waited, std::vector<scheduling::Taken>*) override {
    reading_.stats.waited = waited;
    RunAlone(std::move(reading_), workers_);
    delete this;
  }
  void Drop(scheduling::DropReason reason) override {
    reading_.member->Finish(DropStatus(reason), nullptr, reading_.stats);
    delete this;
  }

 private:
  Reading reading_;
  WorkerPool* const workers_;
};

void RunAlone(Reading reading, WorkerPool* workers) {
  const Clock::duration cost = reading.cost;
  if (reading.of != nullptr) {
    reading.stats.long_lane = cost > workers->longest_piece();
    if (!reading.stats.long_lane) workers->NoteShortRequest();
  }
  if (workers->GivesWay(cost) && !WorkerPool::ThisThreadGivesWay()) {
    const Clock::time_point since = Clock::now() - reading.stats.waited;
    workers->SubmitPieces({new GivingWayJob(std::move(reading), workers)}, since, cost);
    return;
  }
  if (reading.of != nullptr && MayBeCut(reading) && RunInPieces(&reading, workers)) return;
  RunWhole(std::move(reading));
}

// Those that are to give way to short requests do not run with them.
void RunThoseThatGiveWay(std::vector<Reading>* readings, WorkerPool* workers) {
  for (size_t i = 0; i < readings->size() && readings->size() > 1;) {
    if (!workers->GivesWay((*readings)[i].cost)) {
      ++i;
      continue;
    }
    Reading reading = std::move((*readings)[i]);
    readings->erase(readings->begin() + static_cast<std::ptrdiff_t>(i));
    RunAlone(std::move(reading), workers);
  }
}

// Alone, a request takes no longer than it took together with others, and all of them, one after
// the other, no less. An estimate that says otherwise is corrected: there may be no request that
// runs alone. `alone`: of `count` requests, as estimated; zero if nothing is known.
void LearnFromRunTogether(const Reading& reading, Clock::duration alone, Clock::duration together,
                          size_t count) {
  Clock::duration corrected = std::min(reading.cost, together);
  if (alone.count() == 0) {
    corrected = together / count;
  } else if (alone < together) {
    const double times = static_cast<double>(together.count()) / static_cast<double>(alone.count());
    corrected = std::chrono::duration_cast<Clock::duration>(times * reading.cost);
  }
  if (corrected != reading.cost) reading.of->cost().Observe(reading.profile.size, corrected);
}

void RunTogether(std::vector<Reading>* readings, WorkerPool* workers) {
  const Servable& servable = readings->front().member->servable();
  std::vector<engine::BatchMember> members(readings->size());
  RequestClass* const of = readings->front().of;
  Clock::duration alone{};
  int64_t rows = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].request = &(*readings)[i].member->request();
    rows += (*readings)[i].profile.rows;
    const Clock::duration cost = (*readings)[i].cost;
    if (cost <= workers->longest_piece()) workers->NoteShortRequest();
    alone += cost;
  }
  const Clock::time_point start = Clock::now();
  const Status together = WithinMemory([&] {
    servable.model().PredictBatch(servable.batch_rules(), &members);
    return OkStatus();
  });
  if (!together.ok()) {
    // There may be memory for each of them.
    for (size_t i = 0; i < members.size(); ++i) {
      engine::BatchMember& member = members[i];
      member.status = WithinMemory([&] { return RunOne(*(*readings)[i].member, &member.outputs); });
    }
  }
  const Clock::duration runtime = Clock::now() - start;
  of->ObserveJoined(alone, runtime);
  readings->front().stats.run_requests = static_cast<int>(members.size());
  readings->front().stats.run_rows = rows;
  for (size_t i = 0; i < members.size(); ++i) {
    Reading& reading = (*readings)[i];
    if (together.ok()) LearnFromRunTogether(reading, alone, runtime, members.size());
    reading.stats.runtime = runtime;
    reading.stats.joined = true;
    // The servable may go with the last of them.
    reading.member->Finish(members[i].status, members[i].outputs.get(), reading.stats);
  }
}

}  // namespace

void DescribePredict(const DecodedRequest& request, const Servable& servable,
                     scheduling::JobProfile* profile) {
  const engine::RequestProfile known = ProfileOf(request, servable);
  RequestClass* const of = servable.request_class(request.model_spec().signature_name);
  // What will be refused takes none of the room that its class has.
  if (of == nullptr || !CheckRows(known, *of).ok()) return;
  *profile = JobProfileOf(known, of, of->cost().Of(known.size));
}

void RunPredict(PredictMember* first, Clock::duration waited,
                std::vector<scheduling::Taken> companions, WorkerPool* workers) {
  std::vector<Reading> readings;
  readings.reserve(1 + companions.size());
  const auto read = [&](PredictMember* member, Clock::duration has_waited) {
    if (!Read(member, has_waited, &readings.emplace_back())) readings.pop_back();
  };
  read(first, waited);
  // A long one is cut, or gives way, rather than keep short ones waiting.
  const bool may_lead = !readings.empty() && readings.front().cost <= workers->longest_piece();
  if (companions.empty() && may_lead) {
    const Reading& leader = readings.front();
    workers->TakeCompanions(JobProfileOf(leader.profile, leader.of, leader.cost), &companions);
  }
  for (const scheduling::Taken& taken : companions) {
    read(dynamic_cast<PredictMember*>(taken.job), taken.waited);
  }
  RunThoseThatGiveWay(&readings, workers);
  if (readings.size() == 1) {
    RunAlone(std::move(readings.front()), workers);
  } else if (readings.size() > 1) {
    RunTogether(&readings, workers);
  }
}

}  // namespace colcast::inference
