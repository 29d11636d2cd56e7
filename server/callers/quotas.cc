#include "server/callers/quotas.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "server/callers/caller_name.h"

namespace colcast::callers {
namespace {

constexpr char kFile[] = " of --quota_config_file";
// Between looks for what may be forgotten, where clients make up names.
constexpr std::chrono::seconds kForgetEvery{1};

double RateOf(const Quota& quota) { return *quota.max_rows_per_second; }

double BurstOf(const Quota& quota) {
  if (quota.max_burst_rows) return static_cast<double>(*quota.max_burst_rows);
  return std::max(1.0, std::floor(RateOf(quota)));
}

Status CheckQuota(const Quota& quota) {
  const auto& in_flight = quota.max_requests_in_flight;
  if (in_flight && *in_flight < 1) {
    return InvalidArgument("max_requests_in_flight: ", *in_flight, ", expected 1 or more");
  }
  const auto& rate = quota.max_rows_per_second;
  if (rate && !(*rate > 0 && std::isfinite(*rate))) {
    return InvalidArgument("max_rows_per_second: ", *rate, ", expected a number over 0");
  }
  const auto& burst = quota.max_burst_rows;
  if (burst && *burst < 1) {
    return InvalidArgument("max_burst_rows: ", *burst, ", expected 1 or more");
  }
  if (burst && !rate) {
    return InvalidArgument("max_burst_rows: ", *burst, " without max_rows_per_second");
  }
  if (!quota.caller.empty() && !IsName(quota.caller)) {
    return InvalidArgument("caller: expected at most ", kMaxNameBytes,
                           " characters of printable ASCII");
  }
  return OkStatus();
}

// 1000000, not 1e+06.
std::string RateText(double rate) {
  constexpr double kExact = 1e15;
  std::ostringstream text;
  if (rate == std::floor(rate) && rate < kExact) {
    text << static_cast<int64_t>(rate);
  } else {
    text << rate;
  }
  return text.str();
}

// "quota 2 (model "ranker", caller "batch")"
std::string Describe(size_t number, const Quota& quota) {
  std::string text = "quota " + std::to_string(number);
  std::string of;
  if (!quota.model.empty()) of += "model \"" + quota.model + "\"";
  if (!quota.caller.empty())
    of += std::string(of.empty() ? "" : ", ") + "caller \"" + quota.caller + "\"";
  return of.empty() ? text : text + " (" + of + ")";
}

}  // namespace

// What a caller asks of a model now.
struct Quotas::Use {
  std::string caller;
  std::string model;
  bool together = false;  // with other callers
  Quota quota;
  int64_t in_flight = 0;
  std::optional<TokenBucket> rows;

  void SetQuota(const Quota& other, Time now) {
    quota = other;
    if (!quota.max_rows_per_second) {
      rows.reset();
    } else if (rows) {
      rows->SetRate(RateOf(quota), BurstOf(quota), now);
    } else {
      rows.emplace(RateOf(quota), BurstOf(quota), now);
    }
  }

  bool IsIdle(Time now) const { return in_flight == 0 && (!rows || rows->IsFull(now)); }

  std::string Who() const {
    if (together) return "the callers that no quota names, together,";
    return caller.empty() ? "callers without a name" : "caller \"" + caller + "\"";
  }
  std::string What() const {
    return model.empty() ? "models not known yet" : "model \"" + model + "\"";
  }
};

Status CheckQuotas(const std::vector<Quota>& quotas) {
  std::map<std::pair<std::string, std::string>, size_t> numbers;
  for (size_t i = 0; i < quotas.size(); ++i) {
    const Quota& quota = quotas[i];
    Status status = CheckQuota(quota);
    const auto [other, is_new] = numbers.try_emplace({quota.caller, quota.model}, i + 1);
    if (status.ok() && !is_new) {
      status = InvalidArgument("quota ", other->second, " has the same caller and model");
    }
    if (!status.ok()) {
      status.message = Describe(i + 1, quota) + ": " + status.message;
      return status;
    }
  }
  return OkStatus();
}

const char* LimitName(Limit limit) {
  switch (limit) {
    case Limit::kRequestsInFlight:
      return "requests_in_flight";
    case Limit::kRowsPerSecond:
      return "rows_per_second";
    case Limit::kBurstRows:
      return "burst_rows";
  }
  return "unknown";
}

Status Quotas::Create(std::vector<Quota> quotas, std::function<Time()> now,
                      std::unique_ptr<Quotas>* made) {
  std::unique_ptr<Quotas> created(new Quotas(std::move(now)));
  Status status = created->Set(std::move(quotas));
  if (status.ok()) *made = std::move(created);
  return status;
}

Status Quotas::Set(std::vector<Quota> quotas) {
  if (Status status = CheckQuotas(quotas); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  quotas_.clear();
  named_.clear();
  for (Quota& quota : quotas) {
    if (!quota.caller.empty()) named_.insert(quota.caller);
    Key key(quota.caller, quota.model);
    quotas_.emplace(std::move(key), std::move(quota));
  }
  const Time now = now_();
  Uses all = std::move(uses_);
  all.merge(unnamed_);
  uses_.clear();
  unnamed_.clear();
  for (auto& [key, use] : all) {
    const Quota* const quota = Find(use->caller, use->model);
    if (quota == nullptr) continue;  // whoever is in flight keeps it
    use->SetQuota(*quota, now);
    (named_.count(use->caller) > 0 ? uses_ : unnamed_).emplace(key, use);
  }
  Uses together = std::move(together_);
  together_.clear();
  for (auto& [key, use] : together) {
    const Quota* const quota = Find("", use->model);
    if (quota == nullptr) continue;
    use->SetQuota(*quota, now);
    together_.emplace(key, use);
  }
  return OkStatus();
}

const Quota* Quotas::Find(const std::string& caller, const std::string& model) const {
  for (const Key& key : {Key(caller, model), Key(caller, ""), Key("", model), Key("", "")}) {
    const auto found = quotas_.find(key);
    if (found != quotas_.end()) return &found->second;
  }
  return nullptr;
}

void Quotas::Forget(Time now) {
  if (now - forgotten_at_ < kForgetEvery) return;
  forgotten_at_ = now;
  for (auto use = unnamed_.begin(); use != unnamed_.end();) {
    use = use->second->IsIdle(now) ? unnamed_.erase(use) : std::next(use);
  }
}

// Null if nothing is limited.
std::shared_ptr<Quotas::Use> Quotas::UseOf(const std::string& caller, const std::string& model,
                                           Time now) {
  const Quota* const quota = Find(caller, model);
  if (quota == nullptr) return nullptr;
  const bool is_named = named_.count(caller) > 0;
  Uses* uses = is_named ? &uses_ : &unnamed_;
  Key key(caller, model);
  const auto found = uses->find(key);
  if (found != uses->end()) return found->second;
  if (!is_named && unnamed_.size() >= kMaxUnnamed) Forget(now);
  const bool together = !is_named && unnamed_.size() >= kMaxUnnamed;
  if (together) {
    uses = &together_;
    key.first.clear();
  }
  std::shared_ptr<Use>& use = (*uses)[key];
  if (use == nullptr) {
    use = std::make_shared<Use>();
    use->caller = key.first;
    use->model = model;
    use->together = together;
    use->SetQuota(*quota, now);
  }
  return use;
}

Status Quotas::Enter(const std::string& caller, const std::string& model, Place* place,
                     Limit* limit) {
  place->Leave();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Use> use = UseOf(caller, model, now_());
  if (use == nullptr) return OkStatus();
  const auto& most = use->quota.max_requests_in_flight;
  if (most && use->in_flight >= *most) {
    *limit = Limit::kRequestsInFlight;
    return ResourceExhausted(use->Who(), " may have ", *most, " requests to ", use->What(),
                             " in flight, and one more than these came (max_requests_in_flight",
                             kFile, "); try again when one of them is answered");
  }
  ++use->in_flight;
  place->quotas_ = this;
  place->use_ = std::move(use);
  return OkStatus();
}

Status Quotas::TakeRows(const Place& place, int64_t rows, Limit* limit) {
  if (place.use_ == nullptr) return OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  Use& use = *place.use_;
  if (!use.rows) return OkStatus();
  const auto count = static_cast<double>(rows);
  const double burst = BurstOf(use.quota);
  if (count > burst) {
    *limit = Limit::kBurstRows;
    return ResourceExhausted(use.Who(), " may send ", static_cast<int64_t>(burst), " rows to ",
                             use.What(), " at once, and a request has ", rows, " (",
                             use.quota.max_burst_rows ? "max_burst_rows" : "max_rows_per_second",
                             kFile, "); send smaller requests");
  }
  const Time now = now_();
  if (use.rows->Take(count, now)) return OkStatus();
  *limit = Limit::kRowsPerSecond;
  const double milliseconds = 1000 * use.rows->TimeUntil(count, now).count();
  return ResourceExhausted(use.Who(), " may send ", RateText(RateOf(use.quota)),
                           " rows per second to ", use.What(), ", of which ",
                           static_cast<int64_t>(use.rows->At(now)), " are left, and a request has ",
                           rows, " (max_rows_per_second", kFile, "); try again in ",
                           static_cast<int64_t>(std::min(std::ceil(milliseconds), 1e15)), " ms");
}

void Quotas::Leave(Use* use) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --use->in_flight;
}

std::vector<std::string> Quotas::NamedCallers() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {named_.begin(), named_.end()};
}

size_t Quotas::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return uses_.size() + unnamed_.size() + together_.size();
}

}  // namespace colcast::callers
