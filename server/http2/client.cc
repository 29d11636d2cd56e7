#include "server/http2/client.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace colcast::http2 {
namespace {

Status HasEnded() { return Error(StatusCode::kCancelled, "the client has ended"); }

}  // namespace

// Resolves a name on a separate thread, because name servers may be slow.
class Client::Lookup {
 public:
  static std::shared_ptr<Lookup> Begin(const Target& target, std::shared_ptr<net::Poller> poller) {
    auto lookup = std::make_shared<Lookup>();
    if (target.is_literal()) {
      lookup->Ask(target);
      return lookup;
    }
    const auto ask = [lookup, target, poller = std::move(poller)] {
      lookup->Ask(target);
      poller->Wake();
    };
    Thread thread;
    const Status status = StartThread("looking up " + target.text(), ask, &thread);
    if (status.ok()) {
      thread.detach();
    } else {
      lookup->End(status);
    }
    return lookup;
  }

  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }
  std::vector<Address>* addresses() { return &addresses_; }

 private:
  void Ask(const Target& target) { End(target.Resolve(&addresses_)); }
  void End(Status status) {
    status_ = std::move(status);
    is_done_.store(true, std::memory_order_release);
  }

  Status status_;
  std::vector<Address> addresses_;
  std::atomic<bool> is_done_{false};
};

Client::Client(Target target)
    : target_(std::move(target)), thread_("calls to " + target_.text(), [this] { Run(); }) {}

Client::~Client() { Stop(); }

void Client::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  poller_->Wake();
}

uint64_t Client::Start(ClientRequest request, ClientAnswered answered) {
  uint64_t number = 0;
  bool ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    number = ++last_number_;
    ended = ended_;
    if (!ended) {
      started_.push_back(
          std::make_unique<ClientCall>(number, std::move(request), std::move(answered)));
    }
  }
  if (ended) {
    answered(HasEnded(), {});
  } else {
    poller_->Wake();
  }
  return number;
}

void Client::Cancel(uint64_t number) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_.push_back(number);
  }
  poller_->Wake();
}

ClientConnection::Events Client::ConnectionEvents() {
  ClientConnection::Events events;
  events.failed = [this](CallPointer call, Status status) {
    Fail(std::move(call), std::move(status));
  };
  events.ended = [this](CallPointer call, uint32_t error) {
    Forget(*call);
    call->End(error);
  };
  events.refused = [this](CallPointer call) { Refused(std::move(call)); };
  events.unsent = [this](CallPointer call) { waiting_.push_back(std::move(call)); };
  events.not_connected = [this](Status status) {
    if (!waiting_.empty()) connect_error_ = std::move(status);
  };
  return events;
}

void Client::Run() {
  pthread_setname_np(pthread_self(), "client");
  for (;;) {
    poller_->Poll(deadlines_.empty() ? Clock::time_point::max() : deadlines_.begin()->first);
    Collect();
    EndLate();
    Dispatch();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) break;
  }
  EndAll();
}

void Client::Collect() {
  std::vector<CallPointer> started;
  std::vector<uint64_t> cancelled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    started.swap(started_);
    cancelled.swap(cancelled_);
  }
  for (CallPointer& call : started) {
    if (call->request.deadline != Clock::time_point::max()) {
      deadlines_.emplace(call->request.deadline, call->number);
    }
    waiting_.push_back(std::move(call));
  }
  for (const uint64_t number : cancelled) {
    End(number, Error(StatusCode::kCancelled, "the call was cancelled"));
  }
}

void Client::EndLate() {
  const Clock::time_point now = Clock::now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint64_t number = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    End(number, DeadlineExceeded(target_.text(), " did not answer in time"));
  }
}

void Client::EndAll() {
  const Status status = HasEnded();
  Leave();
  for (const auto& each : leaving_) {
    if (const auto connection = each.lock()) connection->Close(status);
  }
  Collect();
  FailWaiting(status);
}

void Client::End(uint64_t number, const Status& status) {
  const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                  [number](const auto& call) { return call->number == number; });
  if (place != waiting_.end()) {
    CallPointer call = std::move(*place);
    waiting_.erase(place);
    return Fail(std::move(call), status);
  }
  if (connection_ != nullptr && connection_->Cancel(number, status)) return connection_->Write();
  for (const auto& each : leaving_) {
    const auto connection = each.lock();
    if (connection != nullptr && connection->Cancel(number, status)) return connection->Write();
  }
}

void Client::Fail(CallPointer call, Status status) {
  Forget(*call);
  call->End(std::move(status));
}

// Queues a refused call once more, for another connection; a second refusal fails it.
void Client::Refused(CallPointer call) {
  if (std::exchange(call->was_refused, true)) {
    return Fail(std::move(call), Unavailable(target_.text(), " refused the call twice"));
  }
  waiting_.push_back(std::move(call));
}

void Client::FailWaiting(const Status& status) {
  for (CallPointer& call : std::exchange(waiting_, {})) Fail(std::move(call), status);
}

void Client::Dispatch() {
  while (!waiting_.empty()) {
    if (connection_ == nullptr || !connection_->takes_calls()) {
      if (!Connect()) return;
      continue;
    }
    for (CallPointer& call : std::exchange(waiting_, {})) connection_->Send(std::move(call));
    connection_->Write();
  }
}

// Takes one step towards a connection. Returns false if it must wait.
bool Client::Connect() {
  Leave();
  if (!addresses_.empty()) {
    ConnectToNext();
  } else if (!connect_error_.ok()) {
    FailWaiting(Unavailable("cannot connect to ", target_.text(), ": ", connect_error_.message));
    connect_error_ = OkStatus();
  } else {
    return LookUp();
  }
  return true;
}

// Stops using the current connection for new calls.
void Client::Leave() {
  if (connection_ == nullptr) return;
  if (connection_->is_connected()) {
    addresses_.clear();
    connect_error_ = OkStatus();
  }
  leaving_.erase(std::remove_if(leaving_.begin(), leaving_.end(),
                                [](const auto& each) { return each.expired(); }),
                 leaving_.end());
  leaving_.push_back(connection_);
  connection_.reset();
}

bool Client::LookUp() {
  if (lookup_ == nullptr) lookup_ = Lookup::Begin(target_, poller_);
  if (!lookup_->is_done()) return false;
  connect_error_ = lookup_->status();
  addresses_ = std::move(*lookup_->addresses());
  lookup_.reset();
  return true;
}

void Client::ConnectToNext() {
  const Address address = addresses_.front();
  addresses_.erase(addresses_.begin());
  int socket = -1;
  connect_error_ = http2::Connect(address, &socket);
  if (!connect_error_.ok()) return;
  connection_ =
      ClientConnection::Start(socket, target_.authority(), poller_.get(), ConnectionEvents());
  if (connection_ == nullptr) connect_error_ = ResourceExhausted("out of memory");
}

}  // namespace colcast::http2
