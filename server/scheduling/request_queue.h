// Jobs, and the queue that determines the order in which they run. It has neither threads nor a
// clock; the caller provides both.
//
// A job that arrives at time t with estimated cost c runs as if it had arrived at t + kAgeing * c,
// but no later than t + kLongestHandicap, because an estimate may be far off (for example, if the
// first run of a signature compiled). So short jobs go before longer ones, but a job never waits
// for one that arrives more than kAgeing * c after it, however many short ones there are. Jobs of
// equal or unknown cost run in order of arrival.
//
// Clients (callers or connections) take turns. Only the first job of each client competes with
// other clients' jobs; once it has been dequeued, the next one counts as arriving at that moment.
// So a client's only waiting job waits for about one job of each other client, however many jobs
// the others have. A job without a client counts as a client of its own.
//
// Once the first job in line has waited longer than the time that remains until its deadline, the
// newest job runs first (long ones still count as older than they are). The old jobs would be late
// anyway, and serving them first would make every answer late (adaptive LIFO; Maurer, "Fail at
// Scale", ACM Queue 2015). Clients then still take turns, beginning with clients that have not had
// one.
//
// A worker that dequeues a job also dequeues waiting jobs that may run with it, within the limits
// of their class. With BatchLimits::share, it leaves the other free workers their share of the
// jobs, and does not join jobs if measurements show that a run of that size is slower. A job waits
// for others to join it only if its class has a timeout.
#ifndef COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
#define COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/scheduling/cost.h"

namespace colcast::scheduling {

using Clock = std::chrono::steady_clock;

enum class DropReason { kQueueFull, kBatchQueueFull, kDeadlineExceeded, kCancelled, kShutdown };
inline constexpr int kNumDropReasons = 5;

// The name in metrics, such as "queue_full".
const char* DropReasonName(DropReason reason);

// The status for the client of a job that never ran.
Status DropStatus(DropReason reason);

// Returns a caller's number for Job::client(), the same for all its requests; 0 without a name.
// `name` is what the client claims; it is ignored unless it is short printable ASCII.
uint64_t ClientOf(std::string_view name);

class Job;

// What must be available before a run starts.
struct RunNeeds {
  int64_t bytes = 0;         // estimated memory
  Clock::duration worker{};  // estimated time for which the run occupies a worker, if long
};

// What the queue knows about a job. A job with a default profile runs alone, in order of arrival.
struct JobProfile {
  // Row counts are capped at this.
  static constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

  RequestClass* request_class = nullptr;  // outlives the job; may be null
  uint64_t group = 0;  // jobs of the same class and non-zero group may run together
  int64_t rows = 0;
  Clock::duration cost{};  // estimated worker time; 0 if unknown
  uint64_t client = 0;     // Job::client()
  RunNeeds needs{};        // resources for which the job waits

  bool MayJoin() const {
    return group != 0 && request_class != nullptr && request_class->limits().join;
  }
};

// A dequeued job, and how long it waited.
struct Taken {
  Job* job = nullptr;
  Clock::duration waited{};
};

// One request or slice. Either it is dropped (Drop()) or it runs, by its own Run() or, as a
// companion, by another job's Run(). From then on it owns itself.
class Job {
 public:
  virtual ~Job() = default;
  // When the client stops waiting; Clock::time_point::max() if never.
  virtual Clock::time_point deadline() const = 0;
  virtual bool cancelled() const = 0;

  // Identifies the client, which is a caller or a connection. All its jobs return the same number;
  // 0 means that the client has no other jobs.
  virtual uint64_t client() const { return 0; }

  // Fills in the parts of the profile that are cheap to determine. Called by the submitting thread
  // before the job is queued.
  virtual void Describe(JobProfile* /*profile*/) {}

  // Runs the job and its companions, which have the same class (a job without a class has none).
  // May modify the vector.
  virtual void Run(Clock::duration waited, std::vector<Taken>* companions) = 0;
  virtual void Drop(DropReason reason) = 0;

  // Called before Drop(). Returns false for a slice whose request was already counted.
  virtual bool CountsAsDropped() { return true; }
};

struct Waiting {
  using Time = Clock::time_point;

  Job* job;
  JobProfile profile;
  Time since;
  Time as_if;  // effective arrival time, which determines its place
  bool is_slice = false;
};

// A client's jobs, ordered by effective arrival and by age. Long jobs count as older than they are.
class ClientLine {
 public:
  using Time = Clock::time_point;
  static constexpr int kAgeing = 8;
  static constexpr Clock::duration kLongestHandicap = std::chrono::seconds(1);

  // The difference between a job's effective and actual arrival: kAgeing times `cost`, but at most
  // kLongestHandicap.
  static Clock::duration Handicap(Clock::duration cost) {
    return kAgeing * std::min(cost, kLongestHandicap / kAgeing);
  }

  struct Entry;
  using ByPlace = std::multimap<Time, Entry>;
  using ByAge = std::multimap<Time, ByPlace::iterator>;
  struct Entry {
    Waiting waiting;
    ByAge::iterator by_age;
  };
  using Place = ByPlace::iterator;

  bool empty() const { return by_place_.empty(); }
  // In order of effective arrival.
  ByPlace& jobs() { return by_place_; }
  const ByPlace& jobs() const { return by_place_; }
  const Waiting& first() const { return by_place_.begin()->second.waiting; }
  Place newest() { return std::prev(by_age_.end())->second; }
  Time newest_age() const { return std::prev(by_age_.end())->first; }

  // The effective arrival with which the first job competes with other clients' jobs.
  Time as_if() const {
    if (turn_ == Time::min()) return first().as_if;
    return std::max(first().as_if, turn_ + Handicap(first().profile.cost));
  }
  // When a job of the client was last dequeued; Time::min() if none has been since the line was
  // last empty.
  Time turn() const { return turn_; }
  void NoteTurn(Time now) { turn_ = now; }

  void Add(Waiting waiting) {
    const Time older = waiting.since - Handicap(waiting.profile.cost);
    const Time as_if = waiting.as_if;
    const Place place = by_place_.emplace(as_if, Entry{std::move(waiting), {}});
    place->second.by_age = by_age_.emplace(older, place);
  }

  Waiting Remove(Place place) {
    by_age_.erase(place->second.by_age);
    return std::move(by_place_.extract(place).mapped().waiting);
  }

 private:
  ByPlace by_place_;
  ByAge by_age_;
  Time turn_ = Time::min();
};

class RequestQueue {
 public:
  using Time = Clock::time_point;
  static constexpr int kAgeing = ClientLine::kAgeing;
  static constexpr Clock::duration kLongestHandicap = ClientLine::kLongestHandicap;

  // Returns whether the resources that a job needs are available.
  using MayRun = std::function<bool(const RunNeeds& needs)>;

  explicit RequestQueue(
      int max_requests, MayRun may_run = [](const RunNeeds&) { return true; })
      : max_requests_(max_requests), may_run_(std::move(may_run)) {}

  // Adds a job, or returns the reason for refusing it.
  std::optional<DropReason> Add(Job* job, JobProfile profile, Time now);

  // Requeues a job whose profile has become known. The job counts as waiting since `since`, and is
  // never refused.
  void AddAgain(Job* job, JobProfile profile, Time since);

  // Adds slices of a dequeued request. They run one by one, as if the request had arrived at
  // `since` with cost `cost`, and are never refused. For `client`, see JobProfile.
  void AddSlices(const std::vector<Job*>& slices, uint64_t client, Time since,
                 Clock::duration cost);

  // Dequeues the next job and its companions. Returns false if no job is ready. `takers` is the
  // number of free workers, including the caller.
  bool Take(Time now, int takers, Taken* next, std::vector<Taken>* companions);

  // Dequeues companions for a job that was dequeued before its profile was known.
  void TakeCompanions(const JobProfile& leader, Time now, int takers,
                      std::vector<Taken>* companions);

  // Dequeues the jobs at the head of the line whose deadlines have passed.
  std::vector<Job*> TakeExpired(Time now);
  std::vector<Job*> TakeAll();

  // When Take() will find a job: no later than `now` if one is ready, Time::max() if nothing waits
  // or all waiting jobs lack resources.
  Time ReadyAt(Time now) const;

  // The effective arrival of the first job in line; Time::max() if there is none.
  Time FirstInLine() const { return line_.empty() ? Time::max() : line_.begin()->first; }

  // The number of waiting requests, not counting slices.
  int requests() const { return requests_; }

 private:
  struct Client;
  using Line = std::multimap<Time, Client*>;  // by effective arrival of the first job
  // Clients by their last turn; if these are equal, the client with the newest job comes first.
  using Newest = std::multimap<std::pair<Time, Time::duration>, Client*>;
  struct Client {
    uint64_t number;
    ClientLine line;
    Line::iterator in_line;
    Newest::iterator in_newest;
  };
  struct Place {
    Client* client = nullptr;
    ClientLine::Place job;
  };

  // The waiting jobs of one class.
  struct ClassCount {
    int requests = 0;
    int64_t rows = 0;
  };

  void PutInLine(Waiting waiting);
  void Enter(Client* client);
  void Leave(Client* client);
  Time ReadyAt(const Waiting& waiting) const;
  Place FirstReady(Time now);
  Waiting Remove(const Place& place);
  Waiting TakeOut(const Place& place, Time now);
  // Truncates `chosen` to the longest prefix for which joining pays.
  static void KeepThoseThatPay(const JobProfile& leader, std::vector<Place>* chosen);
  // Dequeues companions for `leader`, beginning with the newest or the oldest jobs.
  void TakeCompanions(const JobProfile& leader, bool newest_first, Time now, int takers,
                      std::vector<Taken>* companions);

  const int max_requests_;
  const MayRun may_run_;
  std::unordered_map<uint64_t, Client> clients_;  // clients with waiting jobs
  uint64_t clients_of_their_own_ = 0;
  Line line_;
  Newest newest_;
  int requests_ = 0;
  std::unordered_map<const RequestClass*, ClassCount> classes_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
