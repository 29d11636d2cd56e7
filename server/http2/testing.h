// For tests: messages of text, and calls to wait for.
#ifndef COLCAST_SERVER_HTTP2_TESTING_H_
#define COLCAST_SERVER_HTTP2_TESTING_H_

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/http2/client.h"
#include "server/http2/grpc.h"
#include "server/http2/target.h"

namespace colcast::http2 {

inline Message Of(std::string text) {
  const auto owner = std::make_shared<std::string>(std::move(text));
  Message message;
  message.Append(owner, reinterpret_cast<const uint8_t*>(owner->data()), owner->size());
  return message;
}

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
