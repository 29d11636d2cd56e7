#include "server/scheduling/request_queue.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace colcast::scheduling {
namespace {

using Time = RequestQueue::Time;

// How far a worker looks for company.
constexpr int kMaxLooks = 256;

// How much longer than its first request alone a run may take.
constexpr double kTimesAlone = 4;

bool HasWaitedTooLong(Time since, Time deadline, Time now) { return now - since > deadline - now; }

// How much later than it did a job arrived as if.
Clock::duration Handicap(Clock::duration cost) {
  constexpr Clock::duration kLongest = RequestQueue::kLongestHandicap;
  return RequestQueue::kAgeing * std::min(cost, kLongest / RequestQueue::kAgeing);
}

double Nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// What may still join a run.
class Room {
 public:
  explicit Room(const JobProfile& leader)
      : leader_(leader),
        rows_(leader.request_class->limits().max_rows - leader.rows),
        time_(std::numeric_limits<double>::infinity()) {
    const RequestClass& of = *leader.request_class;
    if (!of.limits().share) return;
    const double alone = Nanoseconds(leader.cost);
    const double longest = std::max(Nanoseconds(of.limits().max_time), kTimesAlone * alone);
    time_ = longest / of.joined_share() - alone;
  }

  bool Take(const JobProfile& other) {
    const double time = Nanoseconds(other.cost);
    if (other.request_class != leader_.request_class || other.group != leader_.group ||
        other.rows > rows_ || time > time_) {
      return false;
    }
    rows_ -= other.rows;
    time_ -= time;
    return true;
  }

 private:
  const JobProfile& leader_;
  int64_t rows_;
  double time_;  // of requests that run alone, in nanoseconds
};

}  // namespace

std::optional<DropReason> RequestQueue::Add(Job* job, JobProfile profile, Time now) {
  if (requests_ >= max_requests_) return DropReason::kQueueFull;
  if (profile.request_class != nullptr) {
    const auto waiting = classes_.find(profile.request_class);
    const int64_t most = profile.request_class->limits().max_waiting_rows;
    if (waiting != classes_.end() && most != BatchLimits::kUnlimited &&
        waiting->second.rows > most - profile.rows) {
      return DropReason::kBatchQueueFull;
    }
  }
  Insert({job, profile, now, /*is_piece=*/false});
  return std::nullopt;
}

void RequestQueue::AddAgain(Job* job, JobProfile profile, Time since) {
  Insert({job, profile, since, /*is_piece=*/false});
}

void RequestQueue::AddPieces(const std::vector<Job*>& pieces, Time since, Clock::duration cost) {
  for (Job* const piece : pieces) {
    PutInLine(since + Handicap(cost), {piece, {}, since, /*is_piece=*/true});
  }
}

void RequestQueue::Insert(Waiting waiting) {
  JobProfile& profile = waiting.profile;
  profile.rows = std::clamp<int64_t>(profile.rows, 0, JobProfile::kMaxRows);
  if (profile.request_class != nullptr) {
    ClassCount& count = classes_[profile.request_class];
    ++count.requests;
    count.rows += profile.rows;
  }
  if (!waiting.is_piece) ++requests_;
  PutInLine(waiting.since + Handicap(profile.cost), std::move(waiting));
}

void RequestQueue::PutInLine(Time as_if, Waiting waiting) {
  const Time older = waiting.since - Handicap(waiting.profile.cost);
  const auto place = line_.emplace(as_if, std::move(waiting));
  place->second.by_age = by_age_.emplace(older, place);
}

bool RequestQueue::Take(Time now, int takers, Taken* next, std::vector<Taken>* companions) {
  companions->clear();
  auto place = FirstReady(now);
  if (place == line_.end()) return false;
  const bool newest_first =
      HasWaitedTooLong(place->second.since, place->second.job->deadline(), now);
  if (newest_first) place = std::prev(by_age_.end())->second;
  const Waiting leader = Remove(place);
  *next = {leader.job, now - leader.since};
  TakeCompanions(leader.profile, newest_first, now, takers, companions);
  return true;
}

void RequestQueue::TakeCompanions(const JobProfile& leader, Time now, int takers,
                                  std::vector<Taken>* companions) {
  TakeCompanions(leader, /*newest_first=*/false, now, takers, companions);
}

void RequestQueue::TakeCompanions(const JobProfile& leader, bool newest_first, Time now, int takers,
                                  std::vector<Taken>* companions) {
  if (!leader.MayJoin()) return;
  const RequestClass& of = *leader.request_class;
  const auto count = classes_.find(&of);
  if (count == classes_.end()) return;
  int left = count->second.requests;
  // This worker's part of them and the leader, rounded up, less the leader.
  if (of.limits().share) left = (left + takers) / takers - 1;
  Room room(leader);
  auto place = newest_first ? line_.end() : line_.begin();
  for (int looks = kMaxLooks; looks > 0 && left > 0; --looks) {
    if (place == (newest_first ? line_.begin() : line_.end())) break;
    if (newest_first) --place;
    const auto after = std::next(place);
    if (room.Take(place->second.profile)) {
      const Waiting other = Remove(place);
      companions->push_back({other.job, now - other.since});
      --left;
      place = after;
    } else if (!newest_first) {
      place = after;
    }
  }
}

std::vector<Job*> RequestQueue::TakeExpired(Time now) {
  std::vector<Job*> expired;
  while (!line_.empty() && line_.begin()->second.job->deadline() <= now) {
    expired.push_back(Remove(line_.begin()).job);
  }
  return expired;
}

std::vector<Job*> RequestQueue::TakeAll() {
  std::vector<Job*> all;
  while (!line_.empty()) all.push_back(Remove(line_.begin()).job);
  return all;
}

Time RequestQueue::ReadyAt(Time now) const {
  Time first = Time::max();
  for (const auto& [as_if, waiting] : line_) {
    first = std::min(first, ReadyAt(waiting));
    if (first <= now) break;
  }
  return first;
}

Time RequestQueue::ReadyAt(const Waiting& waiting) const {
  const RequestClass* const of = waiting.profile.request_class;
  if (!waiting.profile.MayJoin() || of->limits().timeout.count() == 0) return waiting.since;
  if (classes_.at(of).rows >= of->limits().max_rows) return waiting.since;
  return waiting.since + of->limits().timeout;
}

RequestQueue::Line::iterator RequestQueue::FirstReady(Time now) {
  return std::find_if(line_.begin(), line_.end(),
                      [&](const auto& entry) { return ReadyAt(entry.second) <= now; });
}

RequestQueue::Waiting RequestQueue::Remove(Line::iterator place) {
  by_age_.erase(place->second.by_age);
  auto node = line_.extract(place);
  Waiting waiting = std::move(node.mapped());
  if (waiting.profile.request_class != nullptr) {
    const auto count = classes_.find(waiting.profile.request_class);
    count->second.rows -= waiting.profile.rows;
    if (--count->second.requests == 0) classes_.erase(count);
  }
  if (!waiting.is_piece) --requests_;
  return waiting;
}

}  // namespace colcast::scheduling
