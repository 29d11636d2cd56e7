#include "server/sender/sender.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "server/base/text.h"

namespace colcast::sender {
namespace {

using http2::ClientCall;
using http2::ClientConnection;

constexpr std::chrono::seconds kConnectTime(5);
constexpr std::chrono::milliseconds kReconnectTime(100);
constexpr double kOpen = -1;

}  // namespace

Sender::Sender(SenderOptions options, const Job& job)
    : options_(std::move(options)), job_(job), slots_(options_.connections) {
  outcome_.calls.resize(job.calls.size());
  connection_of_.resize(job.calls.size());
}

Sender::~Sender() {
  for (const auto& connection : connections_) connection->Close(Unavailable("the run has ended"));
}

Status Sender::Connect() {
  Status status = options_.target.Resolve(&addresses_);
  if (!status.ok()) return status;
  for (Slot& slot : slots_) Open(&slot);
  const Clock::time_point until = Clock::now() + kConnectTime;
  while (IsConnecting() && Clock::now() < until) poller_.Poll(until);
  return OkStatus();
}

bool Sender::IsConnecting() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.connection != nullptr && slot.connection->takes_calls() &&
           !slot.connection->is_connected();
  });
}

ClientConnection::Events Sender::ConnectionEvents() {
  ClientConnection::Events events;
  events.failed = [](CallPointer call, Status status) { call->End(std::move(status)); };
  events.ended = [](CallPointer call, uint32_t error) { call->End(error); };
  events.refused = [this](CallPointer call) {
    if (!std::exchange(call->was_refused, true)) return refused_.push_back(std::move(call));
    call->End(Unavailable(options_.target.text(), " refused the call twice"));
  };
  events.unsent = [this](CallPointer call) { unsent_.push_back(std::move(call)); };
  events.not_connected = [this](Status status) { connect_error_ = std::move(status); };
  return events;
}

// Connects to the target's resolved addresses in turn.
void Sender::Open(Slot* slot) {
  slot->opened = Clock::now();
  slot->connection = nullptr;
  int socket = -1;
  Status status = http2::Connect(addresses_[connections_.size() % addresses_.size()], &socket);
  if (status.ok()) {
    slot->connection = ClientConnection::Start(socket, options_.target.authority(), &poller_,
                                               ConnectionEvents(), options_.tls);
  }
  if (slot->connection == nullptr) {
    connect_error_ = std::move(status);
  } else {
    connections_.push_back(slot->connection);
  }
}

Outcome Sender::Run() {
  began_ = Clock::now();
  while (next_ < job_.calls.size() || open_ > 0) {
    SendDue();
    EndLate();
    for (CallPointer& call : std::exchange(refused_, {})) Send(std::move(call));
    EndUnsent();
    if (next_ < job_.calls.size() || open_ > 0) poller_.Poll(NextEvent());
  }
  outcome_.seconds = SecondsNow();
  return std::move(outcome_);
}

void Sender::SendDue() {
  const double now = SecondsNow();
  while (next_ < job_.calls.size() && job_.calls[next_].due <= now) Start(next_++);
}

void Sender::Start(uint64_t number) {
  const Clock::time_point now = Clock::now();
  const std::string& body = job_.requests[job_.calls[number].request];
  http2::ClientRequest request{options_.method, {}, {}, now + options_.timeout};
  request.message.Append(nullptr, reinterpret_cast<const uint8_t*>(body.data()), body.size());
  outcome_.calls[number] = {std::chrono::duration<double>(now - began_).count(), kOpen};
  ++open_;
  Send(std::make_unique<ClientCall>(
      number, std::move(request),
      [this, number](const Status& status, const http2::Message& answer) {
        Ended(number, status, answer);
      }));
}

void Sender::Send(CallPointer call) {
  Slot& slot = slots_[call->number % slots_.size()];
  const bool is_usable = slot.connection != nullptr && slot.connection->takes_calls();
  if (!is_usable && Clock::now() - slot.opened >= kReconnectTime) Open(&slot);
  if (slot.connection == nullptr || !slot.connection->takes_calls()) {
    unsent_.push_back(std::move(call));
    return;
  }
  connection_of_[call->number] = slot.connection.get();
  slot.connection->Send(std::move(call));
  slot.connection->Write();
}

void Sender::EndLate() {
  const double expired = SecondsNow() - std::chrono::duration<double>(options_.timeout).count();
  for (; oldest_ < next_; ++oldest_) {
    if (!IsOpen(oldest_)) continue;
    if (outcome_.calls[oldest_].sent > expired) return;
    ClientConnection* const connection = connection_of_[oldest_];
    if (connection == nullptr) return;  // not sent; EndUnsent() ends the call
    const Status late = DeadlineExceeded(options_.target.text(), " did not answer in time");
    if (!connection->Cancel(oldest_, late)) return;
    connection->Write();
  }
}

void Sender::EndUnsent() {
  for (CallPointer& call : std::exchange(unsent_, {})) {
    call->End(
        Unavailable("cannot connect to ", options_.target.text(), ": ", connect_error_.message));
  }
}

void Sender::Ended(uint64_t number, const Status& status, const http2::Message& answer) {
  SentCall& call = outcome_.calls[number];
  call.answered = SecondsNow();
  call.code = static_cast<uint32_t>(status.code);
  call.answer_bytes = static_cast<uint32_t>(answer.size());
  --open_;
  if (!status.ok()) {
    CodeErrors& errors = outcome_.errors[status.code];
    if (errors.count++ == 0) errors.first = status.message;
  } else if (options_.keep_every > 0 && number % options_.keep_every == 0) {
    outcome_.answers.emplace_back(number, answer.bytes().ToString());
  }
}

scheduling::Clock::time_point Sender::NextEvent() const {
  const auto after = [this](double seconds) {
    return began_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  Clock::time_point next = Clock::time_point::max();
  if (next_ < job_.calls.size()) next = after(job_.calls[next_].due);
  if (oldest_ < next_)
    next = std::min(next, after(outcome_.calls[oldest_].sent) + options_.timeout);
  return next;
}

bool Sender::IsOpen(uint64_t number) const { return outcome_.calls[number].answered == kOpen; }

double Sender::SecondsNow() const {
  return std::chrono::duration<double>(Clock::now() - began_).count();
}

namespace {

double Percentile(std::vector<double>* values, double percentile) {
  if (values->empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto last = static_cast<double>(values->size() - 1);
  const auto place = values->begin() + static_cast<ptrdiff_t>(last * percentile / 100 + 0.5);
  std::nth_element(values->begin(), place, values->end());
  return *place;
}

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

template <typename T>
void Append(const T* values, size_t count, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

void AddPercentiles(const char* name, std::vector<double>* values, JsonWriter* json) {
  json->Object(name, [&] {
    json->Add({{"p50", Percentile(values, 50)},
               {"p95", Percentile(values, 95)},
               {"p99", Percentile(values, 99)}});
  });
}

}  // namespace

std::string Figures(const Job& job, const Outcome& outcome) {
  std::vector<double> latencies;
  std::vector<double> lateness;
  for (size_t i = 0; i < job.calls.size(); ++i) {
    const SentCall& call = outcome.calls[i];
    lateness.push_back(1000 * (call.sent - job.calls[i].due));
    if (call.code == 0) latencies.push_back(1000 * (call.answered - job.calls[i].due));
  }
  JsonWriter json;
  json.Object([&] {
    json.Add({{"calls", static_cast<int64_t>(job.calls.size())},
              {"answered", static_cast<int64_t>(latencies.size())},
              {"seconds", outcome.seconds},
              {"sender_cpu_seconds", CpuSeconds()}});
    AddPercentiles("latency_ms", &latencies, &json);
    AddPercentiles("lateness_ms", &lateness, &json);
    json.Object("errors", [&] {
      for (const auto& [code, errors] : outcome.errors) {
        json.Object(StatusName(code), [&, &errors = errors] {
          json.Add({{"count", errors.count}, {"first", std::string_view(errors.first)}});
        });
      }
    });
  });
  return json.text();
}

std::string Records(const Outcome& outcome) {
  std::string bytes;
  Append(outcome.calls.data(), outcome.calls.size(), &bytes);
  const uint64_t count = outcome.answers.size();
  Append(&count, 1, &bytes);
  for (const auto& [number, answer] : outcome.answers) {
    const uint64_t head[] = {number, answer.size()};
    Append(head, 2, &bytes);
    bytes += answer;
  }
  return bytes;
}

}  // namespace colcast::sender
