#include "server/inference/predict_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/base/out_of_memory.h"
#include "server/inference/input_bytes.h"
#include "server/inference/measured_run.h"
#include "server/inference/observed_run.h"
#include "server/inference/reading.h"
#include "server/inference/sliced_predict.h"
#include "server/scheduling/run_memory.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using scheduling::RequestClass;
using scheduling::RunMemory;
using scheduling::WorkerPool;

void RunAlone(Reading reading, WorkerPool* workers);

// Whether it may be split. Where runs are filled up to allowed sizes, only if it has to.
bool MayBeSplit(const Reading& reading) {
  const engine::BatchRules& rules = reading.member->servable().batch_rules();
  return reading.profile.can_be_split && !reading.whole &&
         (rules.allowed_batch_sizes.empty() ||
          reading.profile.rows > reading.of->limits().max_slice_rows);
}

Status RunOne(const PredictMember& member, std::unique_ptr<engine::Outputs>* outputs) {
  const engine::Model& model = member.servable().model();
  const engine::BatchRules& rules = member.servable().batch_rules();
  if (!rules.any_signature) return model.Predict(member.request(), outputs);
  std::vector<engine::BatchMember> alone(1);
  alone[0].request = &member.request();
  model.PredictBatch(rules, &alone);
  *outputs = std::move(alone[0].outputs);
  return std::move(alone[0].status);
}

void RunWhole(Reading reading) {
  PredictMember* const member = reading.member;
  const Clock::time_point start = Clock::now();
  MeasuredRun run(reading.of);
  std::unique_ptr<engine::Outputs> outputs;
  const Status status = WithinMemory([&] {
    ObservedRun observed(member->servable().model());
    observed.Add(member->observer());
    return RunOne(*member, &outputs);
  });
  metrics::CallRecord& record = *member->record();
  record.run_start = start;
  record.runtime = Clock::now() - start;
  if (status.ok()) run.Learn(reading.profile.size, reading.input_bytes);
  record.run_requests = 1;
  record.run_rows = reading.profile.rows;
  member->Finish(status, outputs.get());
}

// A request that has been read, and waits once more: it gives way, or for what it needs.
class ReadJob final : public scheduling::Job {
 public:
  ReadJob(Reading reading, WorkerPool* workers) : reading_(std::move(reading)), workers_(workers) {}

  Clock::time_point deadline() const override { return reading_.member->job()->deadline(); }
  bool cancelled() const override { return reading_.member->job()->cancelled(); }
  uint64_t client() const override { return reading_.member->job()->client(); }
  void Run(Clock::duration waited, std::vector<scheduling::Taken>*) override {
    reading_.member->record()->queue_wait = waited;
    RunAlone(std::move(reading_), workers_);
    delete this;
  }
  void Drop(scheduling::DropReason reason) override {
    reading_.member->Finish(DropStatus(reason), nullptr);
    delete this;
  }

 private:
  Reading reading_;
  WorkerPool* const workers_;
};

void RunAlone(Reading reading, WorkerPool* workers) {
  const Clock::duration cost = reading.cost;
  if (reading.of != nullptr) {
    const bool is_long = cost > workers->longest_slice();
    reading.member->record()->long_lane = is_long;
    if (cost.count() > 0 && !is_long) workers->NoteShortRequest();
  }
  if (workers->GivesWay(cost) && !WorkerPool::ThisThreadGivesWay()) {
    const Clock::time_point since = Clock::now() - reading.member->record()->queue_wait;
    workers->SubmitSlices({new ReadJob(std::move(reading), workers)}, since, cost);
    return;
  }
  if (reading.of != nullptr && MayBeSplit(reading) && RunBySlices(&reading, workers, RunAlone))
    return;
  WorkerPool::Share share;
  const scheduling::RunNeeds needs = NeedsOf(reading);
  switch (workers->Reserve(needs, &share)) {
    case RunMemory::Answer::kYes:
      return RunWhole(std::move(reading));
    case RunMemory::Answer::kNever:
      return reading.member->Finish(Refusal(reading, *workers), nullptr);
    case RunMemory::Answer::kLater:
      const Clock::time_point since = Clock::now() - reading.member->record()->queue_wait;
      workers->SubmitForLater(new ReadJob(std::move(reading), workers), needs, since, cost);
  }
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
// the other, hardly less. An estimate that is far off is corrected: there may be no request that
// runs alone. `alone`: of `count` requests, as estimated; zero if nothing is known.
void LearnFromRunTogether(const Reading& reading, Clock::duration alone, Clock::duration together,
                          size_t count) {
  constexpr double kTimesAlone = 1.5;
  Clock::duration corrected = std::min(reading.cost, together);
  if (alone.count() == 0) {
    corrected = together / count;
  } else if (kTimesAlone * alone < together) {
    const double times = static_cast<double>(together.count()) / static_cast<double>(alone.count());
    corrected = std::chrono::duration_cast<Clock::duration>(times * reading.cost);
  }
  if (corrected != reading.cost) reading.of->cost().Observe(reading.profile.size, corrected);
}

int64_t InputBytesTogether(const std::vector<Reading>& readings) {
  std::vector<RequestOfRows> requests;
  int64_t bytes = 0;
  for (const Reading& reading : readings) {
    bytes += reading.input_bytes;
    requests.push_back({&reading.member->request(), reading.profile.rows});
  }
  return bytes + PaddingBytes(requests);
}

void RunTogether(std::vector<Reading>* readings, WorkerPool* workers) {
  WorkerPool::Share share;
  const int64_t input_bytes = InputBytesTogether(*readings);
  const int64_t bytes = readings->front().of->memory().Of(input_bytes);
  if (workers->Reserve({bytes, {}}, &share) != RunMemory::Answer::kYes) {
    for (Reading& reading : *readings) RunAlone(std::move(reading), workers);
    return;
  }
  const Servable& servable = readings->front().member->servable();
  std::vector<engine::BatchMember> members(readings->size());
  RequestClass* const of = readings->front().of;
  Clock::duration alone{};
  int64_t rows = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].request = &(*readings)[i].member->request();
    rows += (*readings)[i].profile.rows;
    const Clock::duration cost = (*readings)[i].cost;
    if (cost <= workers->longest_slice()) workers->NoteShortRequest();
    alone += cost;
  }
  const Clock::time_point start = Clock::now();
  MeasuredRun run(of);
  const Status together = WithinMemory([&] {
    ObservedRun observed(servable.model());
    for (const Reading& reading : *readings) observed.Add(reading.member->observer());
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
  run.LearnMemory(input_bytes);
  const bool says_something =
      run.counts() && together.ok() &&
      std::any_of(members.begin(), members.end(), [](const auto& it) { return it.status.ok(); });
  if (says_something) of->joined().Observe(rows, alone, runtime);
  metrics::CallRecord& of_leader = *readings->front().member->record();
  of_leader.run_requests = static_cast<int64_t>(members.size());
  of_leader.run_rows = rows;
  for (size_t i = 0; i < members.size(); ++i) {
    Reading& reading = (*readings)[i];
    if (says_something) LearnFromRunTogether(reading, alone, runtime, members.size());
    metrics::CallRecord& record = *reading.member->record();
    record.run_start = start;
    record.runtime = runtime;
    record.requests_in_run = static_cast<int>(members.size());
    record.joined = true;
    // The servable may go with the last of them.
    reading.member->Finish(members[i].status, members[i].outputs.get());
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
  // A long one is split, or gives way, rather than keep short ones waiting.
  const bool may_lead = !readings.empty() && readings.front().cost <= workers->longest_slice();
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
