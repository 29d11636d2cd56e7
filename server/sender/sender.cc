#include "server/sender/sender.h"

#include <algorithm>

namespace colcast::sender {
namespace {

constexpr std::chrono::seconds kConnectTime(5);
constexpr std::chrono::milliseconds kReconnectTime(100);

}  // namespace

Sender::Sender(const Options& options, const Job& job) : options_(options), job_(job) {
  outcome_.calls.resize(job.calls.size());
}

void Sender::Connect() {
  while (connections_.size() < options_.connections) connections_.push_back(Open());
  const Clock::time_point until = Clock::now() + kConnectTime;
  while (Clock::now() < until && std::any_of(connections_.begin(), connections_.end(),
                                             [](const auto& it) { return it->is_connecting(); })) {
    poller_.Poll(until);
  }
}

std::shared_ptr<Connection> Sender::Open() {
  const addrinfo& address = *options_.addresses[opened_++ % options_.addresses.size()];
  return Connection::Start(options_, address, &poller_,
                           [this](const Call& call, const Status& status) { End(call, status); });
}

Outcome Sender::Run() {
  began_ = Clock::now();
  while (ended_ < job_.calls.size()) {
    const double now = SecondsNow();
    while (next_ < job_.calls.size() && job_.calls[next_].due <= now) Send(next_++);
    const Clock::time_point next_event = NextEvent();
    if (ended_ < job_.calls.size()) poller_.Poll(next_event);
  }
  outcome_.seconds = SecondsNow();
  return std::move(outcome_);
}

void Sender::Send(uint64_t number) {
  outcome_.calls[number].sent = SecondsNow();
  std::shared_ptr<Connection>& connection = connections_[number % connections_.size()];
  if (!connection->takes_calls() && Clock::now() - connection->started() >= kReconnectTime) {
    connection = Open();
  }
  connection->Send({number, &job_.requests[job_.calls[number].request]});
}

void Sender::End(const Call& call, const Status& status) {
  ++ended_;
  SentCall& ended = outcome_.calls[call.number];
  ended.answered = SecondsNow();
  ended.code = static_cast<uint32_t>(status.code);
  if (!status.ok()) {
    if (outcome_.first_error.empty()) {
      outcome_.first_error = std::string(StatusName(status.code)) + ": " + status.message;
    }
    return;
  }
  const std::string_view message = call.answer.message();
  ended.answer_bytes = static_cast<uint32_t>(message.size());
  if (options_.keep_every > 0 && call.number % options_.keep_every == 0) {
    outcome_.answers.emplace_back(call.number, message);
  }
}

// Also ends late calls. The poller lists all open connections, including replaced ones.
Clock::time_point Sender::NextEvent() {
  Clock::time_point next = Clock::time_point::max();
  if (next_ < job_.calls.size()) {
    const std::chrono::duration<double> due(job_.calls[next_].due);
    next = began_ + std::chrono::duration_cast<Clock::duration>(due);
  }
  for (const auto& connection : poller_.AllOf<Connection>()) {
    next = std::min(next, connection->EndLate(Clock::now()));
  }
  return next;
}

double Sender::SecondsNow() const {
  return std::chrono::duration<double>(Clock::now() - began_).count();
}

}  // namespace colcast::sender
