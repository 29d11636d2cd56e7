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
// Once the first in line has waited longer than it has left, the newest runs first, a long one
// again as if it were older: the old ones are those that would be answered too late anyway, and
// serving them first would make every answer late (adaptive LIFO; Maurer, "Fail at Scale", ACM
// Queue 2015).
//
// Whoever takes a job also takes what waits and may run together with it (batch what waits): as
// many as the limits of their class allow, but not more than this worker's part of what waits, so
// that other workers that are free find some. Nothing waits for company unless its class has a
// timeout.
#ifndef COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
#define COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/scheduling/job.h"
#include "server/scheduling/request_class.h"

namespace colcast::scheduling {

class RequestQueue {
 public:
  using Time = Clock::time_point;
  static constexpr int kAgeing = 8;
  static constexpr Clock::duration kLongestHandicap = std::chrono::seconds(1);

  explicit RequestQueue(int max_requests) : max_requests_(max_requests) {}

  // Why the job cannot wait here; nothing if it does now.
  std::optional<DropReason> Add(Job* job, JobProfile profile, Time now);

  // A job that was taken, and has turned out to be this. It waits as since `since`, and there is
  // always room for it.
  void AddAgain(Job* job, JobProfile profile, Time since);

  // Pieces of a request that was taken. They run one by one, in the place of a request that arrived
  // at `since` and takes `cost`, and there is always room for them.
  void AddPieces(const std::vector<Job*>& pieces, Time since, Clock::duration cost);

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

  // Requests, without pieces.
  int requests() const { return requests_; }

  // Implementation details follow.
 private:
  struct Waiting;
  using Line = std::multimap<Time, Waiting>;          // by the time of arrival as if
  using ByAge = std::multimap<Time, Line::iterator>;  // oldest first, long ones as if older
  struct Waiting {
    Job* job;
    JobProfile profile;
    Time since;
    bool is_piece;
    ByAge::iterator by_age{};
  };

  // What waits of one class.
  struct ClassCount {
    int requests = 0;
    int64_t rows = 0;
  };

  void Insert(Waiting waiting);
  void PutInLine(Time as_if, Waiting waiting);
  Time ReadyAt(const Waiting& waiting) const;
  Line::iterator FirstReady(Time now);
  Waiting Remove(Line::iterator place);
  // Looks from one end of the line on.
  void TakeCompanions(const JobProfile& leader, bool newest_first, Time now, int takers,
                      std::vector<Taken>* companions);

  const int max_requests_;
  Line line_;
  ByAge by_age_;
  int requests_ = 0;
  std::unordered_map<const RequestClass*, ClassCount> classes_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_REQUEST_QUEUE_H_
