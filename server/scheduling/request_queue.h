// The queue of jobs, which determines the order in which they run. It has neither threads nor a
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
// those have. A job without a client counts as a client of its own.
//
// Once the first job in line has waited longer than the time that remains until its deadline, the
// newest job runs first (long ones still count as older than they are). The old jobs would be late
// anyway, and serving them first would make every answer late (adaptive LIFO; Maurer, "Fail at
// Scale", ACM Queue 2015). Clients then still take turns, beginning with those that have not had
// one.
//
// A worker that dequeues a job also dequeues waiting jobs that may run with it, within the limits
// of their class. With BatchLimits::share, it leaves the other free workers their share of the
// jobs, and does not join jobs if measurements show that a run of that size is slower. A job waits
// for others to join it only if its class has a timeout.
#ifndef COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
#define COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/scheduling/client_line.h"
#include "server/scheduling/job.h"
#include "server/scheduling/request_class.h"

namespace colcast::scheduling {

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

  // When Take() will find a job: at most `now` if there is one now, Time::max() if nothing waits or
  // all waiting jobs lack resources.
  Time ReadyAt(Time now) const;

  // The effective arrival of the first job in line; Time::max() if there is none.
  Time FirstInLine() const { return line_.empty() ? Time::max() : line_.begin()->first; }

  // The number of waiting requests, not counting slices.
  int requests() const { return requests_; }

 private:
  struct Client;
  using Line = std::multimap<Time, Client*>;  // by effective arrival of the first job
  // Clients by their last turn; among equals, the client with the newest job comes first.
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

  void Insert(Waiting waiting);
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
