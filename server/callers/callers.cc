#include "server/callers/callers.h"

#include <algorithm>
#include <functional>

#include "server/callers/caller_name.h"

namespace colcast::callers {

Status Callers::Create(const Options& options, std::unique_ptr<Callers>* made) {
  std::unique_ptr<Callers> created(new Callers(options));
  std::vector<Quota> quotas;
  if (!options.quota_file.empty()) {
    if (Status status = ReadQuotaConfig(options.quota_file, &quotas); !status.ok()) return status;
  }
  Status status = Quotas::Create(std::move(quotas), TokenBucket::Clock::now, &created->quotas_);
  if (!status.ok()) return status;
  if (!options.quota_file.empty()) {
    created->quota_file_.emplace(options.quota_file, options.quota_file_poll_wait,
                                 created->quotas_.get());
  }
  created->counts_.Keep(created->quotas_->NamedCallers());
  *made = std::move(created);
  return OkStatus();
}

std::vector<CallerStats> Callers::Stats() {
  counts_.Keep(quotas_->NamedCallers());
  return counts_.All();
}

CallerRequest::CallerRequest(Callers* callers, std::string_view sent)
    : callers_(*callers), name_(NameOf(sent)), counts_(*callers->counts().Of(name_)) {}

uint64_t CallerRequest::client() const {
  if (name_.empty()) return 0;
  return std::max<uint64_t>(1, std::hash<std::string>()("caller:" + name_));
}

Status CallerRequest::Enter(const std::string& model) {
  if (model_ == model) return OkStatus();
  Limit limit{};
  Status status = callers_.quotas().Enter(name_, model, &place_, &limit);
  model_.reset();
  refused_by_.reset();
  if (status.ok()) {
    model_ = model;
  } else {
    refused_by_ = limit;
  }
  return status;
}

Status CallerRequest::TakeRows(int64_t rows) {
  if (has_rows_) return OkStatus();
  Limit limit{};
  Status status = callers_.quotas().TakeRows(place_, rows, &limit);
  has_rows_ = status.ok();
  if (!status.ok()) refused_by_ = limit;
  return status;
}

void CallerRequest::Finish(int64_t rows, std::chrono::nanoseconds run_time) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  place_.Leave();
  counts_.requests.fetch_add(1, kRelaxed);
  counts_.rows.fetch_add(rows, kRelaxed);
  counts_.run_nanoseconds.fetch_add(run_time.count(), kRelaxed);
  if (refused_by_) counts_.refused[static_cast<int>(*refused_by_)].fetch_add(1, kRelaxed);
}

}  // namespace colcast::callers
