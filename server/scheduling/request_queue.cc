#include "server/scheduling/request_queue.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace colcast::scheduling {

const char* DropReasonName(DropReason reason) {
  static constexpr const char* kNames[kNumDropReasons] = {
      "queue_full", "batch_queue_full", "deadline_exceeded", "cancelled", "shutdown"};
  return kNames[static_cast<int>(reason)];
}

Status DropStatus(DropReason reason) {
  switch (reason) {
    case DropReason::kQueueFull:
      return ResourceExhausted(
          "the server's queue is full (--max_queued_requests); try again later or on another "
          "server");
    case DropReason::kBatchQueueFull:
      return Unavailable(
          "The batch scheduling queue to which this task was submitted is full "
          "(max_enqueued_batches of --batching_parameters_file)");
    case DropReason::kDeadlineExceeded:
      return DeadlineExceeded("the deadline passed while the request waited");
    case DropReason::kCancelled:
      return Error(StatusCode::kCancelled, "the client hung up");
    case DropReason::kShutdown:
      return Unavailable("the server is shutting down");
  }
  return Internal("unknown reason to drop a request");
}

uint64_t ClientOf(std::string_view name) {
  constexpr size_t kMaxNameBytes = 128;
  const bool is_name =
      !name.empty() && name.size() <= kMaxNameBytes &&
      std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_name) return 0;
  return std::max<uint64_t>(1, std::hash<std::string>()("caller:" + std::string(name)));
}

namespace {

using Time = RequestQueue::Time;

// The most waiting jobs that a worker examines as companions.
constexpr int kMaxLooks = 256;

// A joined run may take this many times as long as its first request would take alone.
constexpr double kTimesAlone = 4;

bool HasWaitedTooLong(Time since, Time deadline, Time now) { return now - since > deadline - now; }

double Nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// Tracks how many more requests fit into a run.
class Room {
 public:
  explicit Room(const JobProfile& leader)
      : leader_(leader), rows_(leader.rows), alone_(Nanoseconds(leader.cost)) {
    const BatchLimits& limits = leader.request_class->limits();
    if (limits.share) longest_ = std::max(Nanoseconds(limits.max_time), kTimesAlone * alone_);
  }

  bool Take(const JobProfile& other) {
    if (other.request_class != leader_.request_class || other.group != leader_.group) return false;
    const int64_t rows = rows_ + other.rows;
    const double alone = alone_ + Nanoseconds(other.cost);
    if (rows > leader_.request_class->limits().max_rows ||
        alone * leader_.request_class->joined().Of(rows) > longest_) {
      return false;
    }
    rows_ = rows;
    alone_ = alone;
    return true;
  }

 private:
  const JobProfile& leader_;
  int64_t rows_;
  double alone_;  // estimated time to run the requests one after the other, in nanoseconds
  double longest_ = std::numeric_limits<double>::infinity();
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
  AddAgain(job, profile, now);
  return std::nullopt;
}

void RequestQueue::AddAgain(Job* job, JobProfile profile, Time since) {
  profile.rows = std::clamp<int64_t>(profile.rows, 0, JobProfile::kMaxRows);
  if (profile.client == 0) profile.client = --clients_of_their_own_;
  if (profile.request_class != nullptr) {
    ClassCount& count = classes_[profile.request_class];
    ++count.requests;
    count.rows += profile.rows;
  }
  ++requests_;
  PutInLine({job, profile, since, since + ClientLine::Handicap(profile.cost)});
}

void RequestQueue::AddSlices(const std::vector<Job*>& slices, uint64_t client, Time since,
                             Clock::duration cost) {
  JobProfile profile;
  profile.client = client != 0 ? client : --clients_of_their_own_;
  profile.cost = cost / static_cast<int>(slices.size());
  for (Job* const slice : slices) {
    PutInLine({slice, profile, since, since + ClientLine::Handicap(cost), /*is_slice=*/true});
  }
}

void RequestQueue::PutInLine(Waiting waiting) {
  const uint64_t number = waiting.profile.client;
  Client& client = clients_[number];
  client.number = number;
  if (!client.line.empty()) Leave(&client);
  client.line.Add(std::move(waiting));
  Enter(&client);
}

void RequestQueue::Enter(Client* client) {
  const ClientLine& line = client->line;
  client->in_line = line_.emplace(line.as_if(), client);
  const std::pair<Time, Time::duration> key(line.turn(), -line.newest_age().time_since_epoch());
  // Inserts before equal keys: of two clients with equal keys, the later one comes first.
  client->in_newest = newest_.emplace_hint(newest_.lower_bound(key), key, client);
}

void RequestQueue::Leave(Client* client) {
  line_.erase(client->in_line);
  newest_.erase(client->in_newest);
}

bool RequestQueue::Take(Time now, int takers, Taken* next, std::vector<Taken>* companions) {
  companions->clear();
  Place place = FirstReady(now);
  if (place.client == nullptr) return false;
  const Waiting& first = place.job->second.waiting;
  const bool newest_first = HasWaitedTooLong(first.since, first.job->deadline(), now);
  if (newest_first) {
    Client* const client = newest_.begin()->second;
    const ClientLine::Place newest = client->line.newest();
    if (ReadyAt(newest->second.waiting) <= now) place = {client, newest};
  }
  const Waiting leader = TakeOut(place, now);
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
  if (of.limits().share) {
    if (left == 0 || leader.request_class->joined().WantsOneAlone()) return;
    // This worker's share of the waiting requests and the leader, rounded up, minus the leader.
    left = (left + takers) / takers - 1;
  }
  Room room(leader);
  std::vector<Place> chosen;
  int looks = kMaxLooks;
  const auto look = [&](Client* client, ClientLine::Place job) {
    if (room.Take(job->second.waiting.profile)) {
      chosen.push_back({client, job});
      --left;
    }
    return --looks > 0 && left > 0;
  };
  const auto look_at_all_of = [&](Client* client) {
    ClientLine::ByPlace& jobs = client->line.jobs();
    for (auto job = jobs.begin(); !newest_first && job != jobs.end(); ++job) {
      if (!look(client, job)) return false;
    }
    for (auto job = jobs.end(); newest_first && job != jobs.begin();) {
      if (!look(client, --job)) return false;
    }
    return true;
  };
  if (left == 0) return;
  if (newest_first) {
    for (const auto& [key, client] : newest_) {
      if (!look_at_all_of(client)) break;
    }
  } else {
    for (const auto& [as_if, client] : line_) {
      if (!look_at_all_of(client)) break;
    }
  }
  if (of.limits().share) KeepThoseThatPay(leader, &chosen);
  for (const Place& place : chosen) {
    const Waiting other = TakeOut(place, now);
    companions->push_back({other.job, now - other.since});
  }
}

void RequestQueue::KeepThoseThatPay(const JobProfile& leader, std::vector<Place>* chosen) {
  int64_t rows = leader.rows;
  for (const Place& place : *chosen) rows += place.job->second.waiting.profile.rows;
  while (!chosen->empty() && !leader.request_class->joined().Pays(rows)) {
    const int bits = BitsOf(rows);
    while (!chosen->empty() && BitsOf(rows) == bits) {
      rows -= chosen->back().job->second.waiting.profile.rows;
      chosen->pop_back();
    }
  }
}

std::vector<Job*> RequestQueue::TakeExpired(Time now) {
  std::vector<Job*> expired;
  while (!line_.empty()) {
    Client* const client = line_.begin()->second;
    if (client->line.first().job->deadline() > now) break;
    expired.push_back(Remove({client, client->line.jobs().begin()}).job);
  }
  return expired;
}

std::vector<Job*> RequestQueue::TakeAll() {
  std::vector<Job*> all;
  while (!line_.empty()) {
    Client* const client = line_.begin()->second;
    all.push_back(Remove({client, client->line.jobs().begin()}).job);
  }
  return all;
}

Time RequestQueue::ReadyAt(Time now) const {
  Time first = Time::max();
  for (const auto& [as_if, client] : line_) {
    for (const auto& [place, entry] : client->line.jobs()) {
      first = std::min(first, ReadyAt(entry.waiting));
      if (first <= now) return first;
    }
  }
  return first;
}

Time RequestQueue::ReadyAt(const Waiting& waiting) const {
  const RequestClass* const of = waiting.profile.request_class;
  if (!may_run_(waiting.profile.needs)) return Time::max();
  if (!waiting.profile.MayJoin() || of->limits().timeout.count() == 0) return waiting.since;
  if (classes_.at(of).rows >= of->limits().max_rows) return waiting.since;
  return waiting.since + of->limits().timeout;
}

RequestQueue::Place RequestQueue::FirstReady(Time now) {
  for (const auto& [as_if, client] : line_) {
    ClientLine::ByPlace& jobs = client->line.jobs();
    for (auto job = jobs.begin(); job != jobs.end(); ++job) {
      if (ReadyAt(job->second.waiting) <= now) return {client, job};
    }
  }
  return {};
}

Waiting RequestQueue::TakeOut(const Place& place, Time now) {
  place.client->line.NoteTurn(now);
  return Remove(place);
}

Waiting RequestQueue::Remove(const Place& place) {
  Client* const client = place.client;
  Leave(client);
  Waiting waiting = client->line.Remove(place.job);
  if (client->line.empty()) {
    clients_.erase(client->number);
  } else {
    Enter(client);
  }
  if (waiting.profile.request_class != nullptr) {
    const auto count = classes_.find(waiting.profile.request_class);
    count->second.rows -= waiting.profile.rows;
    if (--count->second.requests == 0) classes_.erase(count);
  }
  if (!waiting.is_slice) --requests_;
  return waiting;
}

}  // namespace colcast::scheduling
