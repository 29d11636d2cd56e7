#include "server/engine/program/programs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/program/whole_program.h"

namespace colcast::engine {

namespace {

// Bound each thread's pool of released plans, and the plans' size. A pool could grow forever,
// because a queued request may be released on a different thread from the one that read it.
constexpr size_t kMostSpare = 16;
constexpr size_t kMostKeptColumns = 2048;

std::vector<std::unique_ptr<RequestPlan>>& Spare() {
  thread_local std::vector<std::unique_ptr<RequestPlan>> spare;
  return spare;
}

}  // namespace

std::unique_ptr<RequestPlan, ReleasePlan> RequestPlan::New() {
  std::vector<std::unique_ptr<RequestPlan>>& spare = Spare();
  if (spare.empty()) return std::unique_ptr<RequestPlan, ReleasePlan>(new RequestPlan);
  std::unique_ptr<RequestPlan, ReleasePlan> plan(spare.back().release());
  spare.pop_back();
  return plan;
}

void RequestPlan::Release() {
  std::unique_ptr<RequestPlan> plan(this);
  std::vector<std::unique_ptr<RequestPlan>>& spare = Spare();
  if (spare.size() == kMostSpare || received.inputs.capacity() > kMostKeptColumns) return;
  batch.domains.clear();  // frees the indices
  spare.push_back(std::move(plan));
}

namespace {

// Estimates the memory of a request's input tensors. kOfARow is charged for each row, however many
// columns it has.
int64_t BytesOfInputs(const ReceivedRequest& received, int64_t rows) {
  constexpr double kOfARow = 16;
  constexpr double kMost = 1e15;
  const double bytes = received.bytes + (received.bytes_once + kOfARow) * static_cast<double>(rows);
  return static_cast<int64_t>(std::min(bytes, kMost));
}

// Estimates the model's work on a request's texts, in bytes. A text that is sent once, such as a
// query, is processed with every row. kMarks covers the start and end tokens of a row.
int64_t SizeOfTexts(const ReceivedRequest& received, int64_t rows) {
  constexpr double kMarks = 8;
  constexpr double kMost = 1e15;
  const double size = received.text_bytes + received.text_bytes_once * static_cast<double>(rows);
  return size == 0 ? 0 : static_cast<int64_t>(std::min(size + kMarks * rows, kMost));
}

}  // namespace

Programs::Others::Others() : domains(std::make_unique<Domains>()) {}
Programs::Others::Others(Others&&) noexcept = default;
Programs::Others::~Others() = default;

namespace {

std::vector<Program*> InOrder(const Programs::Others& others, Program* whole) {
  std::vector<Program*> programs = {others.stages.get(), others.rows.get(), others.exact.get(),
                                    others.gathered.get(), whole};
  programs.erase(std::remove(programs.begin(), programs.end(), nullptr), programs.end());
  return programs;
}

std::vector<int> OwnLengthsOf(const std::vector<Program*>& programs) {
  std::set<int> lengths;
  for (const Program* const program : programs) {
    for (const int input : program->own_lengths()) lengths.insert(input);
  }
  return {lengths.begin(), lengths.end()};
}

}  // namespace

Programs::Programs(std::string name, const Signature& signature, Others others)
    : name_(std::move(name)),
      signature_(&signature),
      others_(std::move(others)),
      whole_(MakeWholeProgram(signature_)),
      own_lengths_(OwnLengthsOf(InOrder(others_, whole_.get()))),
      joined_lengths_(stages() == nullptr ? own_lengths_ : stages()->joined_lengths()) {
  for (Program* const program : InOrder(others_, whole_.get())) programs_.emplace_back(program);
}

Programs::~Programs() = default;

bool Programs::has_users() const {
  return domains().take_index() && !signature_->traits().takes_rows;
}

absl::Status Programs::Plan(const DecodedRequest& request, RequestPlan* plan) const {
  plan->request = &request;
  plan->rules = nullptr;
  plan->programs = this;
  plan->examples = nullptr;
  plan->expansion = {};
  ReceivedRequest& received = plan->received;
  absl::Status status = signature_->Receive(request, &received);
  if (!status.ok()) return status;
  Batch& batch = plan->batch;
  batch.outputs = &received.outputs;
  batch.candidates = 0;
  batch.pads_together = false;
  if (stages() != nullptr && stages()->IsPrefetch(received)) {
    return stages()->PlanPrefetch(received, &batch);
  }
  if (domains().HasIndex(received)) {
    batch.form = Batch::Form::kIndexed;
    status = domains().Plan(received, &batch);
    plan->expansion.rows = batch.candidates;
    return status;
  }
  status = PlanRows(&received, &batch);
  if (status.ok()) plan->expansion = received.Expansion();
  return status;
}

// Plans a request to a signature whose inputs no export recorded as rows: passes inputs as sent,
// unless the signature refuses the one-row inputs but accepts them repeated.
absl::Status Programs::PlanUnrecorded(ReceivedRequest* received, Batch* batch) const {
  batch->form = Batch::Form::kRows;
  absl::Status by_rule = received->Plan(signature_->inputs());
  if (by_rule.ok()) {
    const std::vector<int> one_row = received->OneRowInputs(signature_->inputs());
    if (one_row.empty() || trials_.NeedRepeated(*signature_, one_row, received->outputs)) {
      return by_rule;
    }
  }
  // The limits hold however the request runs.
  if (absl::IsResourceExhausted(by_rule)) return by_rule;
  if (absl::Status status = received->Plan(*signature_->as_sent()); !status.ok()) {
    return by_rule.ok() ? status : by_rule;
  }
  batch->form = Batch::Form::kAsSent;
  batch->unequal_rows = std::move(by_rule);
  return absl::OkStatus();
}

// Tries the exact signature first. Plans all other requests with the requested signature, so that
// errors name that signature.
absl::Status Programs::PlanRows(ReceivedRequest* received, Batch* batch) const {
  absl::Status status;
  if (others_.exact != nullptr && others_.exact->Plan(received)) {
    batch->form = Batch::Form::kOneUser;
  } else if (signature_->as_sent() != nullptr) {
    status = PlanUnrecorded(received, batch);
  } else {
    batch->form = Batch::Form::kRows;
    status = received->Plan(signature_->inputs());
  }
  if (!status.ok()) return status;
  batch->candidates = received->rows();
  batch->columns = received->columns;
  if (has_users() || stages() != nullptr) {
    domains().SetRows(batch);
  } else {
    batch->domains.clear();
  }
  return absl::OkStatus();
}

RequestProfile Programs::ProfileOf(const RequestPlan& plan, const BatchRules& rules) const {
  RequestProfile profile;
  profile.rows = plan.received.most_rows;
  profile.input_bytes = BytesOfInputs(plan.received, profile.rows);
  const Batch::Form form = plan.batch.form;
  // Stages gather states, not columns, so with stages an indexed request may be joined and split
  // like any other.
  if (form == Batch::Form::kPrefetch || form == Batch::Form::kAsSent ||
      (form == Batch::Form::kIndexed && stages() == nullptr)) {
    return profile;
  }
  if (others_.rows != nullptr) profile.size = SizeOfTexts(plan.received, profile.rows);
  profile.can_be_split = profile.rows > 1 && CanBeSplit(rules, *plan.batch.outputs);
  // A setting (a scalar for all rows of a request) may differ between requests.
  if (!plan.received.has_setting && CanBeJoined(rules, *plan.batch.outputs)) {
    profile.group = absl::HashOf(this, *plan.batch.outputs) | 1;
  }
  return profile;
}

absl::Status Programs::Run(const Batch& batch, RunResult* result) const {
  absl::Status status;
  for (Counted& one : programs_) {
    if (!one.program->Accepts(batch)) continue;
    const absl::StatusOr<bool> answered = one.program->Run(batch, result);
    if (answered.ok() && !*answered) continue;
    Count(answered.status(), &one);
    if (answered.ok()) return absl::OkStatus();
    status = answered.status();
    result->aliases.clear();
    result->tensors.clear();
  }
  return status.ok() ? absl::InternalError("no program accepts the request") : status;
}

// Logs each program's first failure, with the names of the model and the signature.
void Programs::Count(const absl::Status& status, Counted* run) const {
  const int64_t before =
      (status.ok() ? run->answered : run->failed).fetch_add(1, std::memory_order_relaxed);
  if (status.ok() || before > 0) return;
  const std::string model = fields_.version ? absl::StrCat("model \"", fields_.model, "\" version ",
                                                           *fields_.version, ": ")
                                            : "";
  LogWarning(absl::StrCat(model, "signature \"", name_, "\": program \"", run->program->name(),
                          "\" failed for the first time: ", status.message()),
             fields_);
}

std::vector<ProgramStats> Programs::counts() const {
  std::vector<ProgramStats> counts;
  for (const Counted& one : programs_) {
    for (const bool ok : {true, false}) {
      const int64_t count = (ok ? one.answered : one.failed).load(std::memory_order_relaxed);
      if (count > 0) {
        counts.push_back({name_, one.program->name(), ok ? "ok" : "failed", count});
      }
    }
  }
  return counts;
}

bool Programs::MayShareRuns(const BatchRules& rules) const {
  if (never_join_ || signature_->traits().runs_alone) return false;
  const RowRecord& record = signature_->record();
  if (!record.recorded) return rules.any_signature;
  return record.independent && (record.any_rounding || rules.any_signature);
}

bool Programs::CanBeJoined(const BatchRules& rules, const std::vector<int>& outputs) const {
  if (!MayShareRuns(rules)) return false;
  const Signature::Traits& traits = signature_->traits();
  if (has_users()) {
    if (!traits.takes_rows_or_one_row) return false;
    return stages() != nullptr ? stages()->has_independent_rows()
                               : rules.any_signature && others_.gathered->has_independent_rows();
  }
  if (traits.takes_rows && rules.any_signature) return true;
  return others_.rows != nullptr && traits.takes_rows_or_settings &&
         signature_->RowsHaveOneShape(outputs);
}

bool Programs::CanBeSplit(const BatchRules& rules, const std::vector<int>& outputs) const {
  if (!MayShareRuns(rules)) return false;
  if (!signature_->record().recorded) return signature_->traits().takes_rows;
  // A request with one user is run by the exact signature, so its rows must be independent, too.
  if (others_.exact != nullptr && !others_.exact->has_independent_rows()) return false;
  return others_.rows == nullptr || rules.any_signature || signature_->RowsHaveOneShape(outputs);
}

std::vector<StoreStats> Programs::stores() const {
  std::vector<StoreStats> stores;
  for (const Counted& one : programs_) {
    for (const states::StoreStats& stats : one.program->stats()) stores.push_back({name_, stats});
  }
  return stores;
}

}  // namespace colcast::engine
