// For tests: messages of text, a client, and calls to wait for.
#ifndef COLCAST_SERVER_HTTP2_TESTING_H_
#define COLCAST_SERVER_HTTP2_TESTING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/http2/client_connection.h"
#include "server/http2/grpc.h"
#include "server/http2/target.h"

namespace colcast::http2 {

inline Message Of(std::string text) {
  const auto owner = std::make_shared<std::string>(std::move(text));
  Message message;
  message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()), owner->size());
  return message;
}

// Sends calls over one connection, which is opened for the first call. Calls after the connection
// has ended fail with UNAVAILABLE. All methods may be called from any thread.
class Client {
 public:
  explicit Client(Target target) : target_(std::move(target)), thread_([this] { Run(); }) {}
  // Ends unfinished calls with CANCELLED.
  ~Client() {
    Do([this] { ended_ = true; });
    thread_.join();
  }

  // Starts a call and returns its number. `answered` is called on the client's thread.
  uint64_t Start(ClientRequest request, ClientAnswered answered) {
    const uint64_t number = ++last_number_;
    const auto call = std::make_shared<ClientConnection::CallPointer>(
        std::make_unique<ClientCall>(number, std::move(request), std::move(answered)));
    Do([this, call] { Send(std::move(*call)); });
    return number;
  }
  // Ends an unfinished call with CANCELLED.
  void Cancel(uint64_t number) {
    Do([this, number] {
      if (connection_->Cancel(number, Cancelled())) connection_->Write();
    });
  }

 private:
  static Status Cancelled() { return Error(StatusCode::kCancelled, "the client hung up"); }

  void Do(std::function<void()> action) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      actions_.push_back(std::move(action));
    }
    poller_.Wake();
  }

  void Run() {
    while (!ended_) {
      poller_.Poll(scheduling::Clock::time_point::max());
      std::vector<std::function<void()>> actions;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        actions.swap(actions_);
      }
      for (const auto& action : actions) action();
    }
    if (connection_ != nullptr) connection_->Close(Cancelled());
  }

  void Send(ClientConnection::CallPointer call) {
    if (connection_ == nullptr) Connect();
    if (connection_ == nullptr || !connection_->takes_calls()) {
      return call->End(Unavailable("no connection to ", target_.text()));
    }
    connection_->Send(std::move(call));
    connection_->Write();
  }

  void Connect() {
    std::vector<Address> addresses;
    int socket = -1;
    if (!target_.Resolve(&addresses).ok() || !http2::Connect(addresses[0], &socket).ok()) return;
    const auto lost = [](ClientConnection::CallPointer call) {
      call->End(Unavailable("the connection was lost"));
    };
    ClientConnection::Events events;
    events.failed = [](ClientConnection::CallPointer call, Status status) {
      call->End(std::move(status));
    };
    events.ended = [](ClientConnection::CallPointer call, uint32_t error) { call->End(error); };
    events.refused = lost;
    events.unsent = lost;
    events.not_connected = [](const Status&) {};
    connection_ = ClientConnection::Start(socket, target_.authority(), &poller_, std::move(events));
  }

  const Target target_;
  net::Poller poller_;
  std::atomic<uint64_t> last_number_{0};
  std::mutex mutex_;  // guards `actions_`
  std::vector<std::function<void()>> actions_;
  // Used only by the client's thread.
  bool ended_ = false;
  std::shared_ptr<ClientConnection> connection_;
  std::thread thread_;
};

inline std::unique_ptr<Client> ClientOf(const std::string& text) {
  Target target;
  return Target::Parse(text, &target).ok() ? std::make_unique<Client>(target) : nullptr;
}

// A started call of a test.Service method.
class StartedCall {
 public:
  StartedCall(Client* client, ClientRequest request) : client_(client) {
    request.path = "/test.Service/" + request.path;
    auto ended = std::make_shared<std::promise<Status>>();
    status_ = ended->get_future();
    number_ = client->Start(std::move(request), [this, ended](Status status, Message answer) {
      answer_ = std::move(answer);
      ended->set_value(std::move(status));
    });
  }
  StartedCall(Client* client, const std::string& method, const std::string& text = "hello")
      : StartedCall(client, {method, Of(text), {{"name", "ann"}}}) {}
  // Wait() must have returned before the call is destroyed.
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;

  void Cancel() { client_->Cancel(number_); }
  Status Wait() { return status_.get(); }
  std::string answer() const { return answer_.bytes().ToString(); }

 private:
  Client* const client_;
  uint64_t number_ = 0;
  std::future<Status> status_;
  Message answer_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_TESTING_H_
