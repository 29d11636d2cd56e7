// For tests: a transport that keeps the answer.
#ifndef COLCAST_SERVER_API_TESTING_H_
#define COLCAST_SERVER_API_TESTING_H_

#include <future>
#include <memory>
#include <string>

#include "server/api/call.h"

namespace colcast::api {

struct Sent {
  Status status;
  std::string answer;
};

// `Base` is a class of codecs.
template <typename Base>
class FakeTransport : public Base {
 public:
  explicit FakeTransport(const char* api) : Base(Origin{}) {
    this->origin().api = api;
    this->origin().entrypoint = "GRPC";
    this->origin().client = 7;
  }
  bool cancelled() const override { return false; }
  Status CheckClientReads(scheduling::Clock::time_point) const override { return reads; }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (!status->ok()) answer.clear();
    record->request_bytes = 1000;
    record->response_bytes = answer.size();
  }
  void Send(const Status& status) override { sent->set_value({status, answer}); }
  size_t body_bytes() const override { return 0; }
  bool is_compressed() const override { return false; }
  Status ReadBody(Call*, size_t, bool*) override { return OkStatus(); }

  Status reads;
  std::string answer;
  std::shared_ptr<std::promise<Sent>> sent = std::make_shared<std::promise<Sent>>();
};

}  // namespace colcast::api

#endif  // COLCAST_SERVER_API_TESTING_H_
