// The waiting jobs of one client, in order.
#ifndef COLCAST_SERVER_SCHEDULING_CLIENT_LINE_H_
#define COLCAST_SERVER_SCHEDULING_CLIENT_LINE_H_

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "server/scheduling/job.h"

namespace colcast::scheduling {

struct Waiting {
  using Time = Clock::time_point;

  Job* job;
  JobProfile profile;
  Time since;
  Time as_if;  // effective arrival time, which determines its place
  bool is_slice = false;
};

// Keeps jobs ordered both by effective arrival and by age. Long jobs count as older than they are.
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
  // When a job of the client was last dequeued; Time::min() if none was since the line was last
  // empty.
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

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_CLIENT_LINE_H_
