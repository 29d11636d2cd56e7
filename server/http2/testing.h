// For tests: messages of text, a client, and calls to wait for.
#ifndef COLCAST_SERVER_HTTP2_TESTING_H_
#define COLCAST_SERVER_HTTP2_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
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

// One connection to a server, on a thread of its own.
class Client {
 public:
  explicit Client(const std::string& text) {
    using CallPointer = ClientConnection::CallPointer;
    Target target;
    std::vector<Address> addresses;
    int socket = -1;
    EXPECT_TRUE(Target::Parse(text, &target).ok());
    EXPECT_TRUE(target.Resolve(&addresses).ok());
    EXPECT_TRUE(Connect(addresses.at(0), &socket).ok());
    ClientConnection::Events events;
    events.failed = [](CallPointer call, Status status) { call->End(std::move(status)); };
    events.ended = [](CallPointer call, uint32_t error) { call->End(error); };
    events.refused =
        events.unsent = [](const CallPointer& call) { call->End(Unavailable("refused")); };
    events.not_connected = [](const Status&) {};
    connection_ = ClientConnection::Start(socket, target.authority(), &poller_, events);
    thread_ = std::thread([this] {
      while (!ended_) {
        poller_.Poll(scheduling::Clock::time_point::max());
        for (const auto& task : TakeTasks()) task();
      }
    });
  }
  // Ends unfinished calls.
  ~Client() {
    Do([this] {
      connection_->Close(Unavailable("the client has ended"));
      ended_ = true;
    });
    thread_.join();
  }

  // Starts a call and returns its number. `answered` is called on the client's thread.
  uint64_t Start(const ClientRequest& request, const ClientAnswered& answered) {
    const uint64_t number = ++last_number_;
    Do([this, number, request, answered] {
      if (!connection_->takes_calls()) return answered(Unavailable("the connection has ended"), {});
      connection_->Send(std::make_unique<ClientCall>(number, request, answered));
      connection_->Write();
    });
    return number;
  }
  void Cancel(uint64_t number) {
    Do([this, number] {
      connection_->Cancel(number, Error(StatusCode::kCancelled, "the call was cancelled"));
      connection_->Write();
    });
  }

 private:
  void Do(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    poller_.Wake();
  }
  std::vector<std::function<void()>> TakeTasks() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(tasks_, {});
  }

  net::Poller poller_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::atomic<uint64_t> last_number_{0};
  std::shared_ptr<ClientConnection> connection_;
  bool ended_ = false;
  std::thread thread_;
};

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
