// What waits for a worker, in the order in which it is to run. No threads and no clock: the caller
// has both.
//
// A job that arrived at time t and is estimated to take c runs as if it had arrived at
// t + kAgeing * c: before those that take longer, but after whatever has arrived kAgeing * c
// earlier, or not at all later. So a job waits for no job that arrives more than kAgeing * c after
// it, however many short ones there are, nor for one that arrives more than kLongestHandicap after
// it: an estimate may be far off, as that of a signature whose first run compiled. Jobs of one
// cost, and those of which nothing is known, run in the order of arrival.
//
// Clients take turns. Of each client, that is of each caller or connection, only the first in its
// own line competes with those of others, and once one has been taken the next does as if it had
// arrived at that moment: so a job of a client that has nothing else in line waits for about one
// job of each other client, however many they have waiting. A job of no client is one of its own.
//
// Once the first in line has waited longer than it has left, the newest runs first, a long one
// again as if it were older: the old ones are those that would be answered too late anyway, and
// serving them first would make every answer late (adaptive LIFO; Maurer, "Fail at Scale", ACM
// Queue 2015). Clients take turns then, too, those first of whom nothing has been taken yet.
//
// Whoever takes a job also takes what waits and may run together with it (batch what waits): as
// many as the limits of their class allow, but not more than this worker's part of what waits, so
// that other workers that are free find some, and not where that is measured not to pay. Nothing
// waits for company unless its class has a timeout.
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

  // Whether what a job needs is free.
  using MayRun = std::function<bool(const RunNeeds& needs)>;

  explicit RequestQueue(
      int max_requests, MayRun may_run = [](const RunNeeds&) { return true; })
      : max_requests_(max_requests), may_run_(std::move(may_run)) {}

  // Why the job cannot wait here; nothing if it does now.
  std::optional<DropReason> Add(Job* job, JobProfile profile, Time now);

  // A job that was taken, and has turned out to be this. It waits as since `since`, and there is
  // always room for it.
  void AddAgain(Job* job, JobProfile profile, Time since);

  // Slices of a request that was taken. They run one by one, in the place of a request that arrived
  // at `since` and takes `cost`, and there is always room for them. `client`: as in JobProfile.
  void AddSlices(const std::vector<Job*>& slices, uint64_t client, Time since,
                 Clock::duration cost);

  // Takes the next job and those to run with it. False if none is ready. `takers`: how many workers
  // are free to take jobs, the caller included.
  bool Take(Time now, int takers, Taken* next, std::vector<Taken>* companions);

  // Takes those to run with a job that was taken when it was not known what it is.
  void TakeCompanions(const JobProfile& leader, Time now, int takers,
                      std::vector<Taken>* companions);

  // Takes those at the head of the line whose deadline has passed.
  std::vector<Job*> TakeExpired(Time now);
  std::vector<Job*> TakeAll();

  // When Take() finds a job; at most `now` if it does at once, Time::max() if nothing waits.
  Time ReadyAt(Time now) const;

  // When the first in line arrived, as if; Time::max() if nothing waits.
  Time FirstInLine() const { return line_.empty() ? Time::max() : line_.begin()->first; }

  // Requests, without slices.
  int requests() const { return requests_; }

  // Implementation details follow.
 private:
  struct Client;
  using Line = std::multimap<Time, Client*>;  // by when its first job arrived as if
  // By its last turn, then the newest job first.
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

  // What waits of one class.
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
  // As many of them, from the first on, as run together in less time than apart.
  static void KeepThoseThatPay(const JobProfile& leader, std::vector<Place>* chosen);
  // Looks from one end of the line on.
  void TakeCompanions(const JobProfile& leader, bool newest_first, Time now, int takers,
                      std::vector<Taken>* companions);

  const int max_requests_;
  const MayRun may_run_;
  std::unordered_map<uint64_t, Client> clients_;  // that have something in line
  uint64_t clients_of_their_own_ = 0;
  Line line_;
  Newest newest_;
  int requests_ = 0;
  std::unordered_map<const RequestClass*, ClassCount> classes_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
