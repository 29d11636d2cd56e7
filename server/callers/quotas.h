// What each caller may ask of each model, and what it asks now: requests in flight, rows per
// second.
//
// Each pair of a caller and a model is counted on its own. Pairs whose caller no quota names, of
// which clients can make up any number, are at most kMaxUnnamed: one that has nothing in flight and
// all its rows is forgotten, and those beyond are counted together, by model.
#ifndef COLCAST_SERVER_CALLERS_QUOTAS_H_
#define COLCAST_SERVER_CALLERS_QUOTAS_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/callers/token_bucket.h"

namespace colcast::callers {

struct Quota {
  std::string model;                              // empty: each model
  std::string caller;                             // empty: each caller
  std::optional<int64_t> max_requests_in_flight;  // nullopt: no limit; over 0
  std::optional<double> max_rows_per_second;      // the same
  std::optional<int64_t> max_burst_rows;          // nullopt: those of a second
};

// INVALID_ARGUMENT names the quota, the field and the value that cannot be; two quotas of one
// caller and model cannot be, either.
Status CheckQuotas(const std::vector<Quota>& quotas);

enum class Limit { kRequestsInFlight, kRowsPerSecond, kBurstRows };
inline constexpr int kNumLimits = 3;
// "requests_in_flight" for kRequestsInFlight.
const char* LimitName(Limit limit);

// All methods may be called from any thread.
class Quotas {
 public:
  using Time = TokenBucket::Time;
  static constexpr size_t kMaxUnnamed = 1000;

  // As CheckQuotas(). `now`: the clock.
  static Status Create(std::vector<Quota> quotas, std::function<Time()> now,
                       std::unique_ptr<Quotas>* made);

  // As CheckQuotas(), and then nothing changes. What is in flight, and what rows are left, counts
  // on.
  Status Set(std::vector<Quota> quotas);

  class Place;
  // Counts a request among those in flight until `place` is gone or taken anew. RESOURCE_EXHAUSTED
  // names the limit, the caller, the model, what came and what is allowed; *limit is the one.
  // `caller` empty: it has no name. `model` empty: it is not known yet.
  Status Enter(const std::string& caller, const std::string& model, Place* place, Limit* limit);

  // Takes the rows of the request that has the place. Errors as Enter's, and when to try again.
  Status TakeRows(const Place& place, int64_t rows, Limit* limit);

  std::vector<std::string> NamedCallers() const;
  // Pairs that are counted.
  size_t size() const;

  // Implementation details follow.
 private:
  struct Use;
  using Key = std::pair<std::string, std::string>;  // caller, model
  using Uses = std::map<Key, std::shared_ptr<Use>>;

  explicit Quotas(std::function<Time()> now) : now_(std::move(now)) {}
  const Quota* Find(const std::string& caller, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Use> UseOf(const std::string& caller, const std::string& model, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Use* use);

  const std::function<Time()> now_;
  mutable std::mutex mutex_;
  std::map<Key, Quota> quotas_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> named_ ABSL_GUARDED_BY(mutex_);
  Uses uses_ ABSL_GUARDED_BY(mutex_);          // of named callers
  Uses unnamed_ ABSL_GUARDED_BY(mutex_);       // of others
  Uses together_ ABSL_GUARDED_BY(mutex_);      // of those beyond; the caller is empty
  Time forgotten_at_ ABSL_GUARDED_BY(mutex_);  // last
};

// One in flight. Goes before the quotas do.
class Quotas::Place {
 public:
  Place() = default;
  ~Place() { Leave(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void Leave() {
    if (use_ != nullptr) quotas_->Leave(use_.get());
    use_ = nullptr;
  }

 private:
  friend class Quotas;
  Quotas* quotas_ = nullptr;
  std::shared_ptr<Use> use_;  // null: nothing is limited
};

}  // namespace colcast::callers

#endif  // COLCAST_SERVER_CALLERS_QUOTAS_H_
